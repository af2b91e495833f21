// How `xschedctl top` shows the daemon's answers and handles keys, without a terminal.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tools/xschedctl/top/holds.h"
#include "tools/xschedctl/top/model.h"
#include "tools/xschedctl/top/screen_text.h"
#include "tools/xschedctl/top/view.h"

namespace xschedd::ctl {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kS = 1'000'000'000;
const std::string kDevice = "0000:c1:00.0";

v1::Event MakeEvent(v1::EventKind kind, std::uint64_t client, std::uint64_t time_ns) {
  v1::Event event;
  event.set_kind(kind);
  event.set_client_id(client);
  event.set_device(kDevice);
  event.set_time_ns(time_ns);
  return event;
}

struct Listed {
  std::uint64_t pid;
  int priority = 0;
  v1::ClientState state = v1::CLIENT_STATE_RUNNING;
  std::uint64_t held_ns = 0;
  std::uint64_t submitted = 0;
  double gpu = 0.25;
  std::string command = "/usr/bin/python3 serve.py";
};

v1::ListClientsResponse Answer(std::uint64_t time_ns, const std::vector<Listed>& listed) {
  v1::ListClientsResponse answer;
  answer.set_time_ns(time_ns);
  answer.set_policy("priority");
  v1::Device& device = *answer.add_devices();
  device.set_pci_address(kDevice);
  device.set_name("MI308X");
  device.set_clients(static_cast<std::uint32_t>(listed.size()));
  for (const Listed& one : listed) {
    v1::Client& client = *answer.add_clients();
    client.set_id(one.pid);
    client.set_pid(one.pid);
    client.set_priority_effective(one.priority);
    client.set_weight(100);
    client.set_command(one.command);
    v1::ClientDevice& part = *client.add_devices();
    part.set_device(kDevice);
    part.set_state(one.state);
    part.set_held_ns(one.held_ns);
    part.set_submitted(one.submitted);
    if (one.state == v1::CLIENT_STATE_UNTRACKED) continue;
    part.set_recent_ns(kS);
    part.set_recent_gpu_ns(static_cast<std::uint64_t>(one.gpu * kS));
  }
  return answer;
}

std::vector<std::uint64_t> Pids(const std::vector<TopRow>& rows) {
  std::vector<std::uint64_t> pids;
  for (const TopRow& row : rows)
    pids.push_back(row.pid);
  return pids;
}

TopKey Char(char character) {
  return {TopKey::Kind::kChar, character};
}

std::string Text(const std::vector<TopLine>& lines) {
  std::string text;
  for (const TopLine& line : lines)
    text += line.text + "\n";
  return text;
}

TEST_CASE("top shows clients' claims if any has one, and finds them by their labels") {
  TopModel model;
  v1::ListClientsResponse answer = Answer(kS, {{.pid = 1}, {.pid = 2}, {.pid = 3}});
  model.Add(answer);
  CHECK(TableLines(model.Rows(TopSort::kPid, false, ""), TopSort::kPid, false, 200)[0].find("CLAIM") ==
        std::string::npos);
  v1::ClientClaim& job = *answer.mutable_clients(0)->mutable_claim();
  job.set_name("slurm-17.0");
  job.set_text("job 17.0");
  (*job.mutable_labels())["partition"] = "Night";
  answer.mutable_clients(1)->mutable_claim()->set_name("plain");
  model.Add(answer);
  const auto rows = model.Rows(TopSort::kPid, false, "");
  CHECK((rows[0].claim == "job 17.0" && rows[1].claim == "plain" && rows[2].claim.empty()));
  const auto lines = TableLines(rows, TopSort::kPid, false, 200);
  CHECK(lines[0].find(" CLAIM ") != std::string::npos);
  CHECK(lines[1].find(" job 17.0 ") != std::string::npos);
  for (const char* filter : {"job 17.0", "slurm-17", "partition=night"})
    CHECK(Pids(model.Rows(TopSort::kPid, false, filter)) == std::vector<std::uint64_t>{1});
}

}  // namespace

TEST_CASE("holds: the 99th percentile of the last minute", "[top]") {
  Holds holds;
  CHECK_FALSE(holds.P99(1, kDevice, kS, false));
  // 100 holds of 1 to 100 ms; 99 of them last at most 99 ms.
  std::uint64_t now = 10 * kS;
  for (std::uint64_t ms = 1; ms <= 100; ++ms) {
    holds.Add(MakeEvent(v1::EVENT_KIND_HELD, 1, now));
    now += ms * kMs;
    holds.Add(MakeEvent(v1::EVENT_KIND_OPENED, 1, now));
  }
  CHECK(holds.P99(1, kDevice, now, false) == 99 * kMs);
  CHECK_FALSE(holds.P99(2, kDevice, now, false));
  CHECK_FALSE(holds.P99(1, "0000:c2:00.0", now, false));

  SECTION("holds of more than a minute ago do not count") {
    CHECK_FALSE(holds.P99(1, kDevice, now + Holds::kKeptNs, false));
  }
  SECTION("a hold that changes its reason is one") {
    holds.Add(MakeEvent(v1::EVENT_KIND_HELD, 2, now));
    holds.Add(MakeEvent(v1::EVENT_KIND_HELD, 2, now + 3 * kMs));
    holds.Add(MakeEvent(v1::EVENT_KIND_OPENED, 2, now + 5 * kMs));
    CHECK(holds.P99(2, kDevice, now + 5 * kMs, false) == 5 * kMs);
  }
  SECTION("a hold that lasts counts with its length so far, if the client is still held") {
    holds.Add(MakeEvent(v1::EVENT_KIND_HELD, 1, now));
    CHECK(holds.P99(1, kDevice, now + 2 * kS, true) == 2 * kS);
    CHECK(holds.P99(1, kDevice, now + 2 * kS, false) == 99 * kMs);
  }
  SECTION("after a gap the end of a hold is not known") {
    holds.Add(MakeEvent(v1::EVENT_KIND_HELD, 2, now));
    holds.Add(MakeEvent(v1::EVENT_KIND_LOST, 0, now + kMs));
    holds.Add(MakeEvent(v1::EVENT_KIND_OPENED, 2, now + 9 * kS));
    CHECK_FALSE(holds.P99(2, kDevice, now + 9 * kS, false));
  }
  SECTION("a client that has left is forgotten") {
    v1::Event gone = MakeEvent(v1::EVENT_KIND_CLIENT_GONE, 1, now);
    gone.clear_device();
    holds.Add(gone);
    CHECK_FALSE(holds.P99(1, kDevice, now, false));
  }
  SECTION("memory is bounded") {
    for (std::uint64_t i = 0; i < 10 * Holds::kKept; ++i) {
      holds.Add(MakeEvent(v1::EVENT_KIND_HELD, 3, now));
      holds.Add(MakeEvent(v1::EVENT_KIND_OPENED, 3, now + (i + 1) * 1000));
    }
    // All of the last 1,024 are longer than those before.
    CHECK(*holds.P99(3, kDevice, now + kS, false) >= 9 * Holds::kKept * 1000);
  }
}

TEST_CASE("top: rates over the last seconds", "[top]") {
  TopModel model;
  CHECK(model.Rows(TopSort::kGpu, false, "").empty());
  model.Add(Answer(10 * kS, {{.pid = 7, .held_ns = 0, .submitted = 100}}));
  std::vector<TopRow> rows = model.Rows(TopSort::kGpu, false, "");
  REQUIRE(rows.size() == 1);
  CHECK_FALSE(rows[0].held);  // one answer gives no rate
  CHECK_FALSE(rows[0].launches_s);
  CHECK(rows[0].gpu == 0.25);
  CHECK(rows[0].share == 1.0);
  CHECK(rows[0].command == "python3 serve.py");

  model.Add(Answer(12 * kS, {{.pid = 7, .held_ns = kS / 2, .submitted = 1100}}));
  rows = model.Rows(TopSort::kGpu, false, "");
  CHECK(rows[0].held == 0.25);
  CHECK(rows[0].launches_s == 500.0);

  SECTION("old values are dropped") {
    for (std::uint64_t second = 13; second < 40; ++second)
      model.Add(Answer(second * kS, {{.pid = 7, .held_ns = kS / 2, .submitted = 1100}}));
    rows = model.Rows(TopSort::kGpu, false, "");
    CHECK(rows[0].held == 0.0);
    CHECK(rows[0].launches_s == 0.0);
  }
  SECTION("a count that went back is not known") {
    model.Add(Answer(13 * kS, {{.pid = 7, .held_ns = 0, .submitted = 3}}));
    rows = model.Rows(TopSort::kGpu, false, "");
    CHECK_FALSE(rows[0].launches_s);
  }
  SECTION("untracked clients are not counted") {
    model.Add(Answer(13 * kS, {{.pid = 7, .state = v1::CLIENT_STATE_UNTRACKED, .held_ns = kS / 2, .submitted = 1100}}));
    rows = model.Rows(TopSort::kGpu, false, "");
    CHECK_FALSE(rows[0].gpu);
    CHECK_FALSE(rows[0].share);
    CHECK_FALSE(rows[0].launches_s);
  }
  SECTION("a lost connection starts again") {
    model.Forget();
    CHECK(model.IsEmpty());
    CHECK(model.Rows(TopSort::kGpu, false, "").empty());
  }
}

TEST_CASE("top: memory is a column if it is known, and can be sorted by", "[top]") {
  TopModel model;
  model.Add(Answer(kS, {{.pid = 1}, {.pid = 2}, {.pid = 3}}));
  TopView view(TopSort::kMemory);
  CHECK(Text(view.Compose(model, view.RowsOf(model), {}, 200, 30)).find("MEMORY") == std::string::npos);
  DeviceMemory memory;
  memory.Add(2, kDevice, std::uint64_t{1} << 20);
  memory.Add(3, kDevice, std::uint64_t{3} << 30);
  model.Add(Answer(2 * kS, {{.pid = 1}, {.pid = 2}, {.pid = 3}}), memory);
  CHECK(Pids(view.RowsOf(model)) == std::vector<std::uint64_t>{3, 2, 1});
  const std::string screen = Text(view.Compose(model, view.RowsOf(model), {}, 200, 30));
  CHECK(screen.find("MEM-LIM") == std::string::npos);
  CHECK(screen.find("MEMORY*") != std::string::npos);
  CHECK(screen.find("3.00 GiB") != std::string::npos);
}

TEST_CASE("top: memory by the shim's account is marked, and limits are a column if there is one", "[top]") {
  TopModel model;
  v1::ListClientsResponse answer = Answer(kS, {{.pid = 1}, {.pid = 2}});
  answer.mutable_clients(0)->mutable_devices(0)->set_memory_bytes(std::uint64_t{5} << 30);
  answer.mutable_clients(1)->mutable_devices(0)->set_memory_limit(std::uint64_t{24} << 30);
  model.Add(answer);
  TopView view(TopSort::kMemory);
  CHECK(Pids(view.RowsOf(model)) == std::vector<std::uint64_t>{1, 2});
  const std::string screen = Text(view.Compose(model, view.RowsOf(model), {}, 200, 30));
  CHECK(screen.find("MEMORY*   MEM-LIM ") != std::string::npos);
  CHECK(screen.find("~5.00 GiB") != std::string::npos);
  CHECK(screen.find("24.0 GiB") != std::string::npos);
}

TEST_CASE("top: order and filter", "[top]") {
  TopModel model;
  model.Add(Answer(10 * kS, {{.pid = 30, .priority = 5, .gpu = 0.1, .command = "beta"},
                             {.pid = 10, .priority = -5, .gpu = 0.6, .command = "alpha"},
                             {.pid = 20, .state = v1::CLIENT_STATE_UNTRACKED, .command = "Gamma"}}));
  using Order = std::vector<std::uint64_t>;
  CHECK(Pids(model.Rows(TopSort::kGpu, false, "")) == Order{10, 30, 20});
  CHECK(Pids(model.Rows(TopSort::kGpu, true, "")) == Order{30, 10, 20});  // unknown values come last in both orders
  CHECK(Pids(model.Rows(TopSort::kPriority, false, "")) == Order{30, 20, 10});
  CHECK(Pids(model.Rows(TopSort::kPid, false, "")) == Order{10, 20, 30});
  CHECK(Pids(model.Rows(TopSort::kPid, true, "")) == Order{30, 20, 10});
  CHECK(Pids(model.Rows(TopSort::kCommand, false, "")) == Order{20, 10, 30});
  CHECK(Pids(model.Rows(TopSort::kGpu, false, "GAMMA")) == Order{20});
  CHECK(Pids(model.Rows(TopSort::kGpu, false, "30")) == Order{30});
  CHECK(model.Rows(TopSort::kGpu, false, "no such").empty());
}

TEST_CASE("top: the screen has the given size", "[top]") {
  TopModel model;
  std::vector<Listed> many;
  for (std::uint64_t pid = 1; pid <= 50; ++pid)
    many.push_back({.pid = pid, .gpu = 0.01});
  model.Add(Answer(10 * kS, many));
  TopView view(TopSort::kPid);
  for (const std::size_t width : {1u, 20u, 80u, 200u}) {
    for (const std::size_t height : {1u, 3u, 5u, 24u, 80u}) {
      const auto rows = view.RowsOf(model);
      const auto lines = view.Compose(model, rows, {"14:00:00", "", 1}, width, height);
      CHECK(lines.size() == height);
      for (const TopLine& line : lines)
        CHECK(line.text.size() <= width);
    }
  }
  // Without clients, with an error, and on a screen that is too small.
  const TopModel empty;
  CHECK(Text(view.Compose(empty, {}, {"14:00:00", "no daemon", 1}, 80, 24)).find("no daemon") != std::string::npos);
  CHECK(Text(view.Compose(empty, {}, {"14:00:00", "", 1}, 80, 24)).find("no client is connected") != std::string::npos);
  CHECK(view.Compose(model, {}, {"14:00:00", "", 1}, 0, 0).empty());
  // The remedy at the end of an error is visible.
  const std::string error = "no daemon: nothing listens on /run/xschedd/admin.sock; start xschedd";
  std::string narrow = Text(view.Compose(empty, {}, {"14:00:00", error, 1}, 30, 24));
  std::replace(narrow.begin(), narrow.end(), '\n', ' ');
  CHECK(narrow.find(error) != std::string::npos);
}

TEST_CASE("top: the selected client stays selected and visible", "[top]") {
  TopModel model;
  std::vector<Listed> many;
  for (std::uint64_t pid = 1; pid <= 50; ++pid)
    many.push_back({.pid = pid, .gpu = 0.01});
  model.Add(Answer(10 * kS, many));
  TopView view(TopSort::kPid);
  const auto selected = [&](std::size_t height) {
    const auto rows = view.RowsOf(model);
    for (const TopLine& line : view.Compose(model, rows, {"14:00:00", "", 1}, 80, height)) {
      if (line.style == TopStyle::kSelected) return std::stoull(line.text);
    }
    return 0ull;
  };
  CHECK(selected(24) == 1);
  const auto press = [&](TopKey key) { view.Press(key, view.RowsOf(model)); };
  press({TopKey::Kind::kDown});
  press(Char('j'));
  CHECK(selected(24) == 3);
  press(Char('k'));
  CHECK(selected(24) == 2);
  press({TopKey::Kind::kEnd});
  CHECK(selected(24) == 50);
  CHECK(selected(8) == 50);  // a smaller window
  press({TopKey::Kind::kPageUp});
  CHECK(selected(8) < 50);
  press({TopKey::Kind::kHome});
  press({TopKey::Kind::kUp});
  CHECK(selected(24) == 1);
  press({TopKey::Kind::kDown});
  SECTION("in another order") {
    press(Char('r'));
    CHECK(selected(24) == 2);
  }
  SECTION("when it has left, the client in its row") {
    many.erase(many.begin() + 1);
    model.Add(Answer(11 * kS, many));
    CHECK(selected(24) == 3);
  }
}

TEST_CASE("top: nothing changes without confirmation", "[top]") {
  using Kind = TopAction::Kind;
  TopModel model;
  model.Add(Answer(10 * kS, {{.pid = 7, .priority = 98}}));
  TopView view(TopSort::kPid);
  const auto press = [&](TopKey key) { return view.Press(key, view.RowsOf(model)); };
  const auto type = [&](const std::string& text) {
    for (const char character : text)
      CHECK(press(Char(character)).kind == Kind::kNone);
    CHECK(press({TopKey::Kind::kEnter}).kind == Kind::kNone);
  };
  const auto screen = [&] { return Text(view.Compose(model, view.RowsOf(model), {"14:00:00", "", 1}, 100, 24)); };

  SECTION("priority by number") {
    CHECK(press(Char('p')).kind == Kind::kNone);
    type("-20");
    CHECK(screen().find("from 98 to -20? (y/n)") != std::string::npos);
    const TopAction action = press(Char('y'));
    CHECK(action.kind == Kind::kSetPriority);
    CHECK(action.pid == 7);
    CHECK(action.value == -20);
    CHECK(press(Char('y')).kind == Kind::kNone);  // once
  }
  SECTION("any key other than y cancels") {
    for (const TopKey& key : {Char('n'), Char('x'), TopKey{TopKey::Kind::kEnter}, TopKey{TopKey::Kind::kEscape}}) {
      press(Char('h'));
      CHECK(press(key).kind == Kind::kNone);
      CHECK(screen().find("nothing was changed") != std::string::npos);
    }
  }
  SECTION("a wrong number asks for no confirmation") {
    for (const char* wrong : {"101", "x", "", "1e9"}) {
      press(Char('p'));
      type(wrong);
      CHECK(screen().find("(y/n)") == std::string::npos);
    }
    press(Char('w'));
    type("0");
    CHECK(screen().find("(y/n)") == std::string::npos);
  }
  SECTION("steps stay in range") {
    press(Char('+'));
    CHECK(press(Char('y')).value == 100);
    press(Char('-'));
    CHECK(press(Char('y')).value == 93);
  }
  SECTION("weight, hold, release") {
    press(Char('w'));
    type("250");
    CHECK(press(Char('Y')).kind == Kind::kSetWeight);
    press(Char('h'));
    CHECK(press(Char('y')).kind == Kind::kHold);
    v1::ListClientsResponse held = Answer(11 * kS, {{.pid = 7}});
    held.mutable_clients(0)->set_hold(true);
    model.Add(held);
    press(Char('h'));
    CHECK(press(Char('y')).kind == Kind::kRelease);
  }
  SECTION("without clients, keys that change clients do nothing") {
    press(Char('/'));
    type("nobody");
    for (const char key : {'p', 'w', 'h', '+', '-'}) {
      press(Char(key));
      CHECK(screen().find("(y/n)") == std::string::npos);
      press({TopKey::Kind::kEscape});
      press(Char('/'));
      type("nobody");
    }
  }
  SECTION("q and help") {
    press(Char('?'));
    CHECK(screen().find("keys and columns") != std::string::npos);
    CHECK(press(Char('q')).kind == Kind::kNone);  // any key leaves the help
    CHECK(press(Char('q')).kind == Kind::kQuit);
  }
}

TEST_CASE("top: names of clients cannot move the cursor", "[top]") {
  TopModel model;
  model.Add(Answer(10 * kS, {{.pid = 7, .command = "evil\x1b[2J\n\x07 name"}}));
  TopView view(TopSort::kPid);
  const auto check = [&] {
    for (const TopLine& line : view.Compose(model, view.RowsOf(model), {"14:00:00", "", 1}, 200, 24)) {
      for (const char byte : line.text)
        CHECK(static_cast<unsigned char>(byte) >= 0x20);
    }
  };
  check();
  view.Press(Char('h'), view.RowsOf(model));
  check();
}

}  // namespace xschedd::ctl
