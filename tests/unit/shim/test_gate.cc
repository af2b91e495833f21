// How a thread waits at a shut gate: it spins for as long as it has worked before, then sleeps.
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "client-shim/core/spin_credit.h"
#include "common/clock.h"
#include "tests/catch.h"
#include "tests/unit/shim/brought.h"

using namespace xschedd;
using namespace xschedd::shim;

namespace {

constexpr std::uint64_t kOneMs = 1'000'000;
constexpr std::uint64_t kAnHour = 3600'000 * kOneMs;
constexpr std::uint32_t kHeldSlot = 2;

// A shut gate, and how often the thread that waited there until it opened went to sleep.
long SleepsWhileHeld(SpinCredit* credit, std::uint64_t held_ns, bool may_spin = true) {
  static SessionPool& sessions = NewPool();
  Brought brought;
  brought.writer.RenewLease(MonotonicNs() + kAnHour);
  brought.writer.Set(kHeldSlot, GateSetting{.held = true, .tracked = true, .may_spin = may_spin});
  Session* const session = brought.Take(&sessions, nullptr);
  std::atomic<std::uint32_t> epoch{0};
  long sleeps = 0;
  std::thread held([&] {
    rusage before{};
    rusage after{};
    ::getrusage(RUSAGE_THREAD, &before);
    WaitAtGate(session, kHeldSlot, epoch, 0, credit);
    ::getrusage(RUSAGE_THREAD, &after);
    sleeps = after.ru_nvcsw - before.ru_nvcsw;
  });
  while (!brought.reader.HasWaiters(kHeldSlot))
    std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::nanoseconds(held_ns));
  brought.writer.Set(kHeldSlot, GateSetting{.held = false, .tracked = true});
  brought.writer.WakeGate(kHeldSlot);
  held.join();
  return sleeps;
}

// Of a thread that has worked for so long.
SpinCredit Worked(std::uint64_t cpu_ns) {
  SpinCredit credit;
  credit.Begin(cpu_ns);
  credit.End(1);  // the thread that is held is another one, and has used next to none
  return credit;
}

}  // namespace

TEST_CASE("a held thread that has worked spins, and one that has not sleeps") {
  SpinCredit worked = Worked(SpinCredit::kMostNs);
  SpinCredit fresh;
  // A thread that spins gives way to others, but does not sleep. On a busy machine the time to spin may be over before
  // the gate opens: then that attempt shows nothing.
  bool spun = false;
  for (int attempt = 0; attempt < 20 && !spun; ++attempt) {
    worked = Worked(SpinCredit::kMostNs);
    spun = SleepsWhileHeld(&worked, kOneMs / 10) == 0;
  }
  CHECK(spun);
  CHECK(SleepsWhileHeld(&fresh, 5 * kOneMs) > 0);
  CHECK(SleepsWhileHeld(nullptr, 5 * kOneMs) > 0);
  worked = Worked(SpinCredit::kMostNs);
  CHECK(SleepsWhileHeld(&worked, 5 * kOneMs, false) > 0);
}

TEST_CASE("a held thread that has spun for as long as it may sleeps") {
  SpinCredit worked = Worked(kOneMs);
  CHECK(SleepsWhileHeld(&worked, 50 * kOneMs) > 0);
}

TEST_CASE("a thread may spin for as long as it has used a processor since its last hold") {
  SpinCredit credit;
  CHECK(credit.Begin(3 * kOneMs) == 3 * kOneMs);
  credit.End(4 * kOneMs);  // it spun for 1 ms
  CHECK(credit.Begin(4 * kOneMs) == 2 * kOneMs);
  credit.End(6 * kOneMs);
  CHECK(credit.Begin(6 * kOneMs) == 0);
  credit.End(6 * kOneMs);
  CHECK(credit.Begin(6 * kOneMs + 100) == 100);
  SECTION("more than it had, as its last spin took longer than it should") {
    credit.End(9 * kOneMs);
    CHECK(credit.Begin(9 * kOneMs) == 0);
  }
  SECTION("and never for longer than kMostNs") {
    CHECK(credit.Begin(kAnHour) == SpinCredit::kMostNs);
    credit.End(kAnHour);
    CHECK(credit.Begin(2 * kAnHour) == SpinCredit::kMostNs);
  }
  SECTION("where processor time is not known, it does not") {
    credit.End(0);
    CHECK(credit.Begin(0) == 0);
  }
}
