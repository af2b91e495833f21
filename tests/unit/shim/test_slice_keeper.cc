// When a time slice is set, checked again and removed.
#include <utility>
#include <vector>

#include "client-shim/core/slice_keeper.h"
#include "tests/catch.h"

using namespace xschedd;
using namespace xschedd::shim;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::vector<std::uint32_t> g_calls;
SliceReport g_report;

SliceReport Set(std::uint32_t us) {
  g_calls.push_back(us);
  return g_report;
}

std::vector<std::uint32_t> Calls() {
  return std::exchange(g_calls, {});
}

struct Step {
  const char* when;
  std::uint32_t wanted_us;
  bool busy;
  std::uint64_t at_ns;
  std::vector<std::uint32_t> calls;
  abi::SliceState state;
  std::uint64_t next_ns;
};

void Walk(SliceKeeper& keeper, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    INFO(step.when);
    const std::uint64_t next = keeper.Update(step.wanted_us, {.is_busy = step.busy}, step.at_ns);
    CHECK(Calls() == step.calls);
    CHECK(keeper.State() == step.state);
    CHECK(keeper.Us() == (step.state == abi::SliceState::kInForce ? step.wanted_us : 0));
    CHECK(next == step.next_ns);
  }
}

using enum abi::SliceState;
constexpr std::uint64_t kNever = SliceKeeper::kNever;
constexpr std::uint64_t kStart = 100 * kSecond;

}  // namespace

TEST_CASE("a slice is set while there is work, checked each second, and removed") {
  g_calls.clear();
  g_report = {4, 4};
  SliceKeeper keeper(Set);
  constexpr std::uint64_t kMs = 1'000'000;
  Walk(keeper,
       {
           {"no slice is requested", 0, true, kStart, {}, kNotAsked, kNever},
           {"wanted, no work", 200, false, kStart, {}, kNotAsked, kNever},
           {"wanted, work", 200, true, kStart, {200}, kInForce, kStart + kSecond},
           {"the next renewal", 200, true, kStart + 40 * kMs, {}, kInForce, kStart + kSecond},
           {"another slice is requested", 20'000, true, kStart + 80 * kMs, {20'000}, kInForce, kStart + 1080 * kMs},
           {"a second later", 20'000, true, kStart + 1080 * kMs, {20'000}, kInForce, kStart + 2080 * kMs},
           {"not wanted any more", 0, true, kStart + 1090 * kMs, {0}, kNotAsked, kNever},
           {"nor later", 0, true, kStart + 5000 * kMs, {}, kNotAsked, kNever},
           {"wanted again", 200, true, kStart + 5001 * kMs, {200}, kInForce, kStart + 6001 * kMs},
       });
}

TEST_CASE("an idle process keeps its slice for ten seconds, during which it may still be withdrawn") {
  g_calls.clear();
  g_report = {4, 4};
  SliceKeeper keeper(Set);
  Walk(keeper, {{"work", 200, true, kStart, {200}, kInForce, kStart + kSecond}});
  SECTION("it rests") {
    for (std::uint64_t second = 1; second < 10; ++second) {
      const std::uint64_t now = kStart + second * kSecond;
      Walk(keeper, {{"idle", 200, false, now, {}, kInForce, now + kSecond}});
    }
    Walk(keeper, {
                     {"after ten seconds", 200, false, kStart + 10 * kSecond, {0}, kNotAsked, kNever},
                     {"and then", 200, false, kStart + 11 * kSecond, {}, kNotAsked, kNever},
                     {"work again", 200, true, kStart + 60 * kSecond, {200}, kInForce, kStart + 61 * kSecond},
                 });
  }
  SECTION("it is no longer requested") {
    Walk(keeper, {{"not wanted", 0, false, kStart + kSecond, {0}, kNotAsked, kNever}});
  }
  SECTION("another slice is requested") {
    Walk(keeper, {{"less", 100, false, kStart + kSecond, {100}, kInForce, kStart + 2 * kSecond}});
  }
}

TEST_CASE("without time slices that is reported, and nothing is set") {
  g_calls.clear();
  SECTION("the vendor has none") {
    SliceKeeper keeper(nullptr);
    CHECK_FALSE(keeper.HasLever());
    Walk(keeper, {
                     {"not wanted", 0, true, kStart, {}, kNotAsked, kNever},
                     {"wanted", 200, false, kStart, {}, kNotHere, kNever},
                     {"with work", 200, true, kStart, {}, kNotHere, kNever},
                     {"not wanted any more", 0, true, kStart, {}, kNotAsked, kNever},
                 });
  }
  SECTION("no group is known yet") {
    g_report = {0, 0};
    SliceKeeper keeper(Set);
    Walk(keeper, {
                     {"wanted", 200, true, kStart, {200}, kNotHere, kStart + kSecond},
                     {"soon after", 200, true, kStart + 1, {}, kNotHere, kStart + kSecond},
                     {"without work", 200, false, kStart + kSecond, {}, kNotHere, kNever},
                 });
    g_report = {2, 2};
    Walk(keeper, {{"later", 200, true, kStart + 2 * kSecond, {200}, kInForce, kStart + 3 * kSecond}});
  }
  SECTION("the driver refuses") {
    g_report = {4, 1};
    SliceKeeper keeper(Set);
    Walk(keeper, {
                     {"wanted", 200, true, kStart, {200}, kRefused, kStart + kSecond},
                     {"a second later", 200, true, kStart + kSecond, {200}, kRefused, kStart + 2 * kSecond},
                 });
    g_report = {4, 4};
    Walk(keeper, {{"slices that were set are removed", 0, true, kStart + 2 * kSecond, {0}, kNotAsked, kNever}});
  }
}

TEST_CASE("removing a slice is tried again some times if the driver fails") {
  g_calls.clear();
  g_report = {4, 4};
  SliceKeeper keeper(Set);
  Walk(keeper, {{"work", 200, true, kStart, {200}, kInForce, kStart + kSecond}});
  g_report = {4, 3};
  std::uint64_t now = kStart;
  int calls = 0;
  for (std::uint64_t next = now; next != kNever; next = keeper.Update(0, {}, now)) {
    now = next;
    calls += static_cast<int>(Calls().size());
    REQUIRE(calls < 20);
  }
  calls += static_cast<int>(Calls().size());
  CHECK(calls == 5);
  g_report = {4, 4};
  Walk(keeper, {{"wanted again", 200, true, now, {200}, kInForce, now + kSecond},
                {"and removed", 0, true, now, {0}, kNotAsked, kNever}});
}

TEST_CASE("a short slice with which no work ends is removed, and tried again later") {
  g_calls.clear();
  g_report = {4, 4};
  SliceKeeper keeper(Set);
  std::uint64_t now = kStart;
  SliceKeeper::Work work{.is_busy = true};
  SliceKeeper::Progress& progress = work.devices[3];
  progress = {.has_work = true, .completed = 7};
  keeper.Update(200, work, now);
  CHECK(Calls() == std::vector<std::uint32_t>{200});
  // Until work has ended, and then for a second.
  const auto stall = [&] {
    keeper.Update(200, work, now += kSecond - 1);
    CHECK(keeper.State() == kInForce);
    Calls();
    const std::uint64_t next = keeper.Update(200, work, now += 1);
    CHECK(Calls() == std::vector<std::uint32_t>{0});
    CHECK(keeper.State() == kStalled);
    CHECK(keeper.Us() == 0);
    return next - now;
  };
  SECTION("for a second, then for twice as long each time") {
    for (const std::uint64_t seconds : {1, 2, 4, 8}) {
      const std::uint64_t rest = stall();
      CHECK(rest == seconds * kSecond);
      keeper.Update(200, work, now += rest - 1);
      CHECK(Calls().empty());
      CHECK(keeper.State() == kStalled);
      ++progress.completed;
      keeper.Update(200, work, now += 1);
      CHECK(Calls() == std::vector<std::uint32_t>{200});
      CHECK(keeper.State() == kInForce);
    }
  }
  SECTION("for an hour at most") {
    std::uint64_t rest = 0;
    for (int i = 0; i < 20; ++i) {
      rest = stall();
      keeper.Update(200, work, now += rest);
    }
    CHECK(rest == 4096 * kSecond);
  }
  SECTION("and for a second again after a minute in which work ended") {
    CHECK(stall() == kSecond);
    now += kSecond;
    for (int i = 0; i < 61; ++i) {
      ++progress.completed;
      keeper.Update(200, work, now += kSecond);
    }
    CHECK(stall() == kSecond);
  }
  SECTION("not while work ends") {
    for (int i = 0; i < 100; ++i) {
      ++progress.completed;
      keeper.Update(200, work, now += kSecond / 2);
      CHECK(keeper.State() == kInForce);
    }
  }
  SECTION("not without work in flight: it waits at its gate") {
    progress.has_work = false;
    for (int i = 0; i < 10; ++i) {
      keeper.Update(200, work, now += kSecond);
      CHECK(keeper.State() == kInForce);
    }
  }
  SECTION("also if work of another device ends") {
    work.devices[0] = {.has_work = true, .completed = 1};
    keeper.Update(200, work, now += kSecond / 2);
    ++work.devices[0].completed;
    keeper.Update(200, work, now += kSecond / 2);
    CHECK(keeper.State() == kStalled);
  }
  SECTION("withdrawn and requested again while it pauses") {
    stall();
    keeper.Update(0, work, now);
    CHECK(keeper.State() == kNotAsked);
    keeper.Update(200, work, now);
    CHECK(Calls().empty());
  }
}

TEST_CASE("a long slice stays, even if no work ends") {
  g_calls.clear();
  g_report = {4, 4};
  SliceKeeper keeper(Set);
  SliceKeeper::Work work{.is_busy = true};
  work.devices[0].has_work = true;
  for (int second = 0; second < 10; ++second) {
    keeper.Update(20'000, work, kStart + static_cast<std::uint64_t>(second) * kSecond);
    CHECK(keeper.State() == kInForce);
  }
}
