// What earlier waits say about the next one, by the functions alone; policy_modes_test.cc has what others get for it.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "daemon/policy/waits.h"
#include "tests/catch.h"

namespace xschedd::policy {
namespace {

constexpr std::uint64_t kStart = 1'000 * kNsPerS;
constexpr std::uint64_t kWaitUs = 200;
constexpr std::uint64_t kNothing = kNever;  // is expected

// A host's waits, each of them kWaitUs long.
class Host {
 public:
  // Time passes until it waits.
  void After(std::uint64_t us) {
    now_ns_ += us * kNsPerUs;
    NoteWaits(memory, true, now_ns_);
    now_ns_ += kWaitUs * kNsPerUs;
    NoteWaits(memory, false, now_ns_);
  }
  // A request begins that is `us` after the end of the last one.
  void Request(std::uint64_t us) {
    const std::uint64_t ended_ns = now_ns_;
    now_ns_ += us * kNsPerUs;
    NoteRequest(memory, ended_ns, now_ns_);
  }
  void Pass(std::uint64_t us) { now_ns_ += us * kNsPerUs; }
  void Launch(std::uint64_t launches) { NoteLaunches(memory, launches); }
  std::uint64_t LingersUs() const { return (std::max(LingersUntilNs(memory), now_ns_) - now_ns_) / kNsPerUs; }
  // How long until it is asked again, to hear of `us` before the wait.
  std::uint64_t AskAgainUs(std::uint64_t us) const {
    return (AskAgainNs(memory, NextWaitNs(memory, now_ns_) - us * kNsPerUs, now_ns_) - now_ns_) / kNsPerUs;
  }
  // From now on.
  std::uint64_t NextWaitUs() const {
    const std::uint64_t next_ns = NextWaitNs(memory, now_ns_);
    return next_ns == 0 ? kNothing : (next_ns - now_ns_) / kNsPerUs;
  }

  WaitMemory memory;

 private:
  std::uint64_t now_ns_ = kStart;
};

}  // namespace

TEST_CASE("the next wait is expected after the shortest recent gap, unless one is often near") {
  struct Row {
    const char* name;
    std::vector<std::uint64_t> gaps_us;  // over and over
    std::uint64_t next_us;               // after the last one of these
    std::uint64_t lingers_us;
    std::uint64_t once_not_near_us;  // next_us once another one would no longer be near
  };
  for (const Row& row : {
           Row{"one in 14 ms", {14'000}, 14'000, 0, 10'000},
           Row{"three in a row", {14'000, 250, 300}, 14'000, 0, 10'000},
           Row{"the first goes on", {14'000, 100, 300}, 14'000, 0, 10'000},
           Row{"the same, if two are not always told apart", {14'000, 100, 300, 14'000, 300}, 14'000, 0, 10'000},
           Row{"and after the first", {14'000, 100, 300, 14'000, 300, 14'000}, kNothing, 1'000, 10'000},
           Row{"one call that waits twice", {14'000, 10}, 14'000, 0, 10'000},
           Row{"and has waited once", {14'000, 10, 14'000}, 14'000, 200, 10'000},
           Row{"the shortest gap counts", {14'000, 20'000, 9'000}, 9'000, 0, 5'000},
           Row{"every second one near", {6'000, 3'900}, kNothing, 0, 2'000},
           Row{"every third one near", {14'000, 14'000, 3'000}, kNothing, 0, 10'000},
           Row{"near and in its row", {14'000, 100, 300, 14'000, 100}, kNothing, 1'000, 10'000},
       }) {
    INFO(row.name);
    Host host;
    for (int i = 0; i < 60; ++i)
      for (const std::uint64_t us : row.gaps_us)
        host.After(us);
    CHECK(host.NextWaitUs() == row.next_us);
    CHECK(host.LingersUs() == row.lingers_us);
    host.Pass(4'000);
    CHECK(host.NextWaitUs() == row.once_not_near_us);
  }
}

TEST_CASE("nothing is known of a host that has not waited") {
  Host host;
  CHECK(host.NextWaitUs() == kNothing);
  CHECK(host.LingersUs() == 0);
  host.After(14'000);
  CHECK(host.NextWaitUs() == kNothing);
}

TEST_CASE("a gap that has become longer is learnt in some waits, a shorter one at once") {
  Host host;
  struct Row {
    std::uint64_t gap_us;
    std::uint32_t times;
    std::uint64_t learnt_us;
  };
  for (const Row& row : {Row{8'000, 60, 8'000}, Row{16'000, 1, 9'000}, Row{16'000, 1, 10'125}, Row{16'000, 5, 16'000},
                         Row{7'000, 1, 7'000}, Row{3'999, 1, 7'000}, Row{4'000, 1, 4'000}}) {
    for (std::uint32_t i = 0; i < row.times; ++i)
      host.After(row.gap_us);
    CHECK(host.memory.gap.ns == row.learnt_us * kNsPerUs);
  }
}

TEST_CASE("the lead is the shortest recent time until a request first waits, or its length if it does not") {
  Host host;
  struct Row {
    std::uint64_t wait_at_us;  // of a request of 10 ms; 10'000: it does not wait
    std::uint64_t lead_us;
  };
  host.Request(40'000);
  for (const Row& row : {Row{8'000, 8'000}, Row{10'000, 9'000}, Row{10'000, 10'000}, Row{3'000, 3'000},
                         Row{8'000, 3'375}, Row{8'000, 3'796}}) {
    INFO("a wait after " << row.wait_at_us << " us");
    if (row.wait_at_us < 10'000) {
      host.After(row.wait_at_us);
    } else {
      host.Pass(10'000);
    }
    host.Request(40'000);
    CHECK(host.memory.lead.ns / kNsPerUs == row.lead_us);
    CHECK(host.NextWaitUs() == (row.lead_us < 4'000 ? kNothing : row.lead_us));
  }
}

TEST_CASE("the next wait is expected after as many launches as recently, at the present pace") {
  struct Row {
    const char* name;
    std::uint64_t launches;  // of each stretch before, of 8 ms
    std::uint64_t launched;  // in the present one
    std::uint64_t after_us;
    std::uint64_t next_us;
    std::uint64_t ask_us;  // to hear of it 900 us before
  };
  for (const Row& row : {
           Row{"as before", 400, 300, 6'000, 2'000, 550},
           Row{"a slower host", 400, 300, 9'000, 3'000, 1'050},
           Row{"a faster one", 400, 300, 3'000, 1'000, 100},
           Row{"all of them launched", 400, 400, 6'000, 0, 0},
           Row{"more than before", 400, 500, 6'000, 0, 0},
           Row{"not enough launches to know the pace", 400, 99, 1'000, 7'000, 3'050},
           Row{"and its time is over", 400, 99, 9'000, 4'000, 1'550},
           Row{"few launches: by time", 15, 14, 6'000, 2'000, 1'100},
       }) {
    INFO(row.name);
    Host host;
    for (int i = 0; i < 60; ++i) {
      host.Launch(row.launches);
      host.After(8'000);
    }
    host.Launch(row.launched);
    host.Pass(row.after_us);
    CHECK(host.NextWaitUs() == row.next_us);
    if (row.ask_us != 0) CHECK(host.AskAgainUs(900) == row.ask_us);
  }
}

TEST_CASE("the fewest recent launches count, and more of them are learnt in some waits") {
  Host host;
  struct Row {
    std::uint64_t launches;
    std::uint32_t times;
    std::uint64_t learnt;
  };
  for (const Row& row :
       {Row{400, 60, 400}, Row{800, 1, 450}, Row{800, 1, 506}, Row{800, 5, 800}, Row{4, 1, 4}, Row{9, 1, 5}}) {
    for (std::uint32_t i = 0; i < row.times; ++i) {
      host.Launch(row.launches);
      host.After(8'000);
    }
    CHECK(host.memory.gap.launches == row.learnt);
  }
}

TEST_CASE("a stretch of hours has its pace, too") {
  constexpr std::uint64_t kHourUs = 3'600'000'000;
  constexpr std::uint64_t kLaunches = 1'000'000'000;
  Host host;
  for (int i = 0; i < 60; ++i) {
    host.Launch(kLaunches);
    host.After(kHourUs);
  }
  host.Launch(kLaunches / 2);
  host.Pass(kHourUs / 2);
  CHECK(host.NextWaitUs() == kHourUs / 2);
}

TEST_CASE("a stretch in which the group was not followed says nothing") {
  Host host;
  for (int i = 0; i < 60; ++i)
    host.After(8'000);
  host.memory.stretch_since_ns = 0;
  CHECK(host.NextWaitUs() == kNothing);
  host.After(5'000);
  CHECK(host.memory.gap.ns == 8'000 * kNsPerUs);
  CHECK(host.NextWaitUs() == 8'000);
}

}  // namespace xschedd::policy
