// What earlier waits say about the next one, by the functions alone; policy_modes_test.cc has what others get for it.
#include <cstdint>
#include <vector>

#include "daemon/policy/waits.h"
#include "tests/catch.h"

namespace xschedd::policy {
namespace {

constexpr std::uint64_t kStart = 1'000 * kNsPerS;
constexpr std::uint64_t kWaitUs = 200;

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
  bool LingersAfter(std::uint64_t us) const { return Lingers(memory, now_ns_ + us * kNsPerUs); }
  // From now on; 0: nothing is expected.
  std::uint64_t NextWaitUs() const {
    const std::uint64_t next_ns = NextWaitNs(memory);
    return next_ns == 0 ? 0 : (next_ns - now_ns_) / kNsPerUs;
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
    bool lingers;
  };
  for (const Row& row : {
           Row{"one in 14 ms", {14'000}, 14'000, false},
           Row{"three in a row", {14'000, 100, 300}, 14'000, false},
           Row{"one call that waits twice", {14'000, 10}, 14'000, false},
           Row{"the shortest gap counts", {14'000, 20'000, 9'000}, 9'000, false},
           Row{"every second one near", {6'000, 3'900}, 0, false},
           Row{"every third one near", {14'000, 14'000, 3'000}, 0, false},
           Row{"near and in its row", {14'000, 100, 300, 14'000, 100}, 0, true},
       }) {
    INFO(row.name);
    Host host;
    for (int i = 0; i < 60; ++i)
      for (const std::uint64_t us : row.gaps_us)
        host.After(us);
    CHECK(host.NextWaitUs() == row.next_us);
    CHECK(host.LingersAfter(999) == row.lingers);
    CHECK_FALSE(host.LingersAfter(1'000));
  }
}

TEST_CASE("nothing is known of a host that has not waited") {
  Host host;
  CHECK(host.NextWaitUs() == 0);
  CHECK_FALSE(host.LingersAfter(0));
  host.After(14'000);
  CHECK(host.NextWaitUs() == 0);
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
    CHECK(host.memory.gap_ns == row.learnt_us * kNsPerUs);
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
    CHECK(host.memory.lead_ns / kNsPerUs == row.lead_us);
    CHECK(host.NextWaitUs() == row.lead_us);
  }
}

TEST_CASE("a stretch in which the group was not followed says nothing") {
  Host host;
  for (int i = 0; i < 60; ++i)
    host.After(8'000);
  host.memory.stretch_since_ns = 0;
  CHECK(host.NextWaitUs() == 0);
  host.After(5'000);
  CHECK(host.memory.gap_ns == 8'000 * kNsPerUs);
  CHECK(host.NextWaitUs() == 8'000);
}

}  // namespace xschedd::policy
