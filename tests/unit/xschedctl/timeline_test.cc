// Events become tracks: states, names, counters and marks, complete from beginning to end.
#include "tools/xschedctl/timeline.h"

#include <random>
#include <sstream>

#include "tests/catch.h"

namespace xschedd::ctl {
namespace {

constexpr char kGpu[] = "0000:c1:00.0";
constexpr std::uint64_t kStart = 5'000'000'000;

v1::Event At(std::uint64_t after_ns, v1::EventKind kind, std::uint64_t client, const std::string& device = kGpu) {
  v1::Event event;
  event.set_time_ns(kStart + after_ns);
  event.set_kind(kind);
  event.set_client_id(client);
  event.set_pid(1000 + client);
  event.set_device(device);
  return event;
}

v1::ListClientsResponse Snapshot(std::uint64_t after_ns,
                                 std::vector<std::pair<std::uint64_t, v1::ClientState>> states) {
  v1::ListClientsResponse answer;
  answer.set_time_ns(kStart + after_ns);
  for (const auto& [id, state] : states) {
    v1::Client& client = *answer.add_clients();
    client.set_id(id);
    client.set_pid(1000 + id);
    client.set_command("python train.py");
    v1::ClientDevice& device = *client.add_devices();
    device.set_device(kGpu);
    device.set_state(state);
    if (state == v1::CLIENT_STATE_HELD) device.set_held_for("pid 1001");
  }
  return answer;
}

struct Recording {
  std::ostringstream text;
  ChromeTrace trace{text, kStart, Json::object()};
  Timeline timeline{trace, [](std::uint64_t pid) { return "command of " + std::to_string(pid); }};

  std::vector<Json> Finish(std::uint64_t after_ns) {
    timeline.End(kStart + after_ns);
    trace.Close();
    const Json json = Json::parse(text.str());
    return json["traceEvents"].get<std::vector<Json>>();
  }
};

// "state start-end" in µs, of one process, in order.
std::vector<std::string> Slices(const std::vector<Json>& events, std::uint64_t pid) {
  std::vector<std::string> slices;
  for (const Json& event : events) {
    if (event["ph"] != "X" || event["pid"] != pid) continue;
    const double start = event["ts"];
    const double end = start + event["dur"].get<double>();
    slices.push_back(event["name"].get<std::string>() + " " + std::to_string(static_cast<int>(start)) + "-" +
                     std::to_string(static_cast<int>(end)));
  }
  return slices;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("a client without events has one state for the whole time") {
  Recording recording;
  recording.timeline.Take(Snapshot(0, {{1, v1::CLIENT_STATE_RUNNING}, {2, v1::CLIENT_STATE_HELD}}));
  const auto events = recording.Finish(9000);
  CHECK(Slices(events, 1001) == Strings{"running 0-9"});
  CHECK(Slices(events, 1002) == Strings{"held for pid 1001 0-9"});
  const bool named = std::any_of(events.begin(), events.end(), [](const Json& event) {
    return event["name"] == "process_name" && event["args"]["name"] == "pid 1001 python train.py";
  });
  CHECK(named);
}

TEST_CASE("each event begins its state, and held names the client it is held for") {
  Recording recording;
  recording.timeline.Take(Snapshot(0, {{1, v1::CLIENT_STATE_UNTRACKED}}));
  recording.timeline.Add(At(0, v1::EVENT_KIND_LIVE, 0));
  recording.timeline.Add(At(1000, v1::EVENT_KIND_TRACKED, 1));
  recording.timeline.Add(At(2000, v1::EVENT_KIND_BUSY, 1));
  v1::Event held = At(3000, v1::EVENT_KIND_HELD, 1);
  held.set_rule("priority");
  held.set_for_pid(7);
  held.set_for_priority(50);
  recording.timeline.Add(held);
  held.set_time_ns(kStart + 4000);
  held.set_for_pid(8);
  recording.timeline.Add(held);
  recording.timeline.Add(At(5000, v1::EVENT_KIND_OPENED, 1));
  recording.timeline.Add(At(6000, v1::EVENT_KIND_IDLE, 1));
  recording.timeline.Add(At(7000, v1::EVENT_KIND_UNTRACKED, 1));
  const auto events = recording.Finish(8000);
  CHECK(Slices(events, 1001) == Strings{"untracked 0-1", "idle 1-2", "running 2-3", "held for pid 7 3-4",
                                        "held for pid 8 4-5", "running 5-6", "idle 6-7", "untracked 7-8"});
  std::vector<std::uint64_t> waited_for;
  for (const Json& event : events) {
    if (event["args"].contains("for_pid")) waited_for.push_back(event["args"]["for_pid"]);
  }
  CHECK(waited_for == std::vector<std::uint64_t>{7, 8});
}

TEST_CASE("a client that connects and leaves has its name, and ends when it leaves") {
  Recording recording;
  recording.timeline.Take(Snapshot(0, {}));
  recording.timeline.Add(At(1000, v1::EVENT_KIND_CLIENT_CONNECTED, 3, ""));
  recording.timeline.Add(At(2000, v1::EVENT_KIND_DEVICE_ATTACHED, 3));
  recording.timeline.Add(At(3000, v1::EVENT_KIND_TRACKED, 3));
  recording.timeline.Add(At(3000, v1::EVENT_KIND_BUSY, 3));
  recording.timeline.Add(At(5000, v1::EVENT_KIND_CLIENT_GONE, 3, ""));
  CHECK(recording.timeline.ClientsSeen() == 1);
  const auto events = recording.Finish(9000);
  CHECK(Slices(events, 1003) == Strings{"untracked 2-3", "running 3-5"});
  const bool named = std::any_of(events.begin(), events.end(), [](const Json& event) {
    return event["name"] == "process_name" && event["args"]["name"] == "pid 1003 command of 1003";
  });
  CHECK(named);
}

TEST_CASE("counters show how many clients run and are held") {
  Recording recording;
  recording.timeline.Take(Snapshot(0, {{1, v1::CLIENT_STATE_RUNNING}, {2, v1::CLIENT_STATE_IDLE}}));
  recording.timeline.Add(At(1000, v1::EVENT_KIND_BUSY, 2));
  recording.timeline.Add(At(2000, v1::EVENT_KIND_HELD, 2));
  recording.timeline.Add(At(3000, v1::EVENT_KIND_CLIENT_GONE, 1, ""));
  std::vector<std::pair<int, int>> counts;
  for (const Json& event : recording.Finish(4000)) {
    if (event["ph"] == "C") counts.emplace_back(event["args"]["running"], event["args"]["held"]);
  }
  CHECK(counts == std::vector<std::pair<int, int>>{{1, 0}, {1, 0}, {2, 0}, {1, 1}, {0, 1}, {0, 0}});
}

TEST_CASE("samples of work in flight and windows become counters when they change") {
  Recording recording;
  v1::ListClientsResponse now = Snapshot(0, {{1, v1::CLIENT_STATE_RUNNING}, {2, v1::CLIENT_STATE_RUNNING}});
  v1::Device& gpu = *now.add_devices();
  gpu.set_pci_address(kGpu);
  gpu.set_name("a GPU");
  recording.timeline.Take(now);
  const auto sample = [&](std::uint64_t after_ns, std::uint32_t first, std::uint32_t second, std::uint32_t window) {
    now.set_time_ns(kStart + after_ns);
    now.mutable_clients(0)->mutable_devices(0)->set_in_flight(first);
    now.mutable_clients(1)->mutable_devices(0)->set_in_flight(second);
    now.mutable_clients(1)->mutable_devices(0)->set_window_us(window);
    recording.timeline.Sample(now);
  };
  sample(1000, 3, 4, 0);
  sample(2000, 3, 4, 500);
  sample(3000, 4, 3, 500);
  // A client and a device that no event has reported are left out.
  v1::Client& unknown = *now.add_clients();
  unknown.set_id(9);
  unknown.add_devices()->set_device("0000:c2:00.0");
  sample(4000, 4, 3, 500);
  Strings counters;
  bool is_named = false;
  for (const Json& event : recording.Finish(5000)) {
    is_named |= event["name"] == "process_name" && event["args"]["name"] == "device " + std::string(kGpu) + " (a GPU)";
    if (event["ph"] != "C" || event["name"] == "clients") continue;
    const bool is_device = event["pid"].get<std::uint64_t>() > (1u << 22);
    counters.push_back((is_device ? "device" : event["pid"].dump()) + " " + event["name"].get<std::string>() + " " +
                       event["args"].dump() + " " + event["ts"].dump());
  }
  CHECK(is_named);
  const std::string at = " on " + std::string(kGpu);
  CHECK(counters == Strings{"1001 in flight" + at + " {\"launches\":3} 1.0", "1001 window" + at + " {\"us\":0} 1.0",
                            "1002 in flight" + at + " {\"launches\":4} 1.0", "1002 window" + at + " {\"us\":0} 1.0",
                            "device in flight {\"launches\":7} 1.0", "1002 window" + at + " {\"us\":500} 2.0",
                            "1001 in flight" + at + " {\"launches\":4} 3.0",
                            "1002 in flight" + at + " {\"launches\":3} 3.0"});
}

TEST_CASE("changes by administrators are marks with their author") {
  Recording recording;
  recording.timeline.Take(Snapshot(0, {{1, v1::CLIENT_STATE_RUNNING}}));
  v1::Event event = At(1000, v1::EVENT_KIND_PRIORITY, 1, "");
  event.set_priority(9);
  event.set_reason("set to 9 by uid 0 (pid 5)");
  recording.timeline.Add(event);
  event = At(2000, v1::EVENT_KIND_POLICY, 0, "");
  event.set_pid(0);
  event.set_reason("policy fifo by uid 0 (pid 6)");
  recording.timeline.Add(event);
  std::vector<std::string> marks;
  for (const Json& mark : recording.Finish(4000)) {
    if (mark["ph"] == "i")
      marks.push_back(mark["name"].get<std::string>() + ": " + mark["args"]["why"].get<std::string>());
  }
  CHECK(marks == Strings{"priority 9: set to 9 by uid 0 (pid 5)", "policy: policy fifo by uid 0 (pid 6)"});
}

TEST_CASE("after lost events the state is unknown until the next snapshot, whose content counts once") {
  Recording recording;
  recording.timeline.Take(Snapshot(0, {{1, v1::CLIENT_STATE_RUNNING}, {2, v1::CLIENT_STATE_RUNNING}}));
  CHECK(recording.timeline.Add(At(1000, v1::EVENT_KIND_IDLE, 1)));
  CHECK(!recording.timeline.Add(At(2000, v1::EVENT_KIND_LOST, 0)));
  recording.timeline.Take(Snapshot(5000, {{1, v1::CLIENT_STATE_HELD}}));
  CHECK(recording.timeline.Add(At(4000, v1::EVENT_KIND_BUSY, 1)));  // from before the snapshot
  const auto events = recording.Finish(9000);
  CHECK(Slices(events, 1001) == Strings{"running 0-1", "idle 1-2", "unknown 2-5", "held for pid 1001 5-9"});
  CHECK(Slices(events, 1002) == Strings{"running 0-2", "unknown 2-5"});
}

TEST_CASE("tracks never have gaps or overlaps, and the file is complete") {
  std::mt19937 random(3);
  const v1::EventKind kinds[] = {v1::EVENT_KIND_TRACKED, v1::EVENT_KIND_UNTRACKED, v1::EVENT_KIND_BUSY,
                                 v1::EVENT_KIND_IDLE,    v1::EVENT_KIND_HELD,      v1::EVENT_KIND_OPENED};
  Recording recording;
  std::vector<std::pair<std::uint64_t, v1::ClientState>> clients;
  for (std::uint64_t id = 1; id <= 5; ++id)
    clients.emplace_back(id, v1::CLIENT_STATE_IDLE);
  recording.timeline.Take(Snapshot(0, clients));
  std::uint64_t now = 0;
  for (int i = 0; i < 5000; ++i) {
    now += random() % 3000;
    v1::Event event = At(now, kinds[random() % std::size(kinds)], 1 + random() % 5);
    event.set_for_pid(random() % 3);
    recording.timeline.Add(event);
  }
  const auto events = recording.Finish(now + 1000);
  std::map<std::uint64_t, double> ends;
  for (const Json& event : events) {
    if (event["ph"] != "X") continue;
    const std::uint64_t pid = event["pid"];
    const double start = event["ts"];
    CHECK(start == Approx(ends[pid]).margin(0.01));
    ends[pid] = start + event["dur"].get<double>();
  }
  REQUIRE(ends.size() == 5);
  for (const auto& [pid, end] : ends)
    CHECK(end == Approx(static_cast<double>(now + 1000) / 1e3));
}

}  // namespace xschedd::ctl
