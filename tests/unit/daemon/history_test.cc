// Histories against a simple model of the same changes, and the bounds of their memory.
#include "daemon/registry/history.h"

#include <numeric>
#include <random>

#include "tests/catch.h"

using namespace xschedd;

namespace {

constexpr std::uint64_t kMs = policy::kNsPerMs;
constexpr std::uint64_t kS = policy::kNsPerS;
constexpr std::uint64_t kStart = 1'000 * kS;

Reason For(std::uint64_t pid, policy::Why why = policy::Why::kPriority) {
  return {why, pid, 50};
}

std::uint64_t In(const Account& account, Phase phase) {
  return account.phase_ns[static_cast<std::size_t>(phase)];
}

std::uint64_t Sum(const Account& account) {
  return std::accumulate(account.phase_ns.begin(), account.phase_ns.end(), std::uint64_t{0});
}

const HeldTotal* Find(const Account& account, std::uint64_t pid) {
  for (const HeldTotal& total : account.causes) {
    if (!total.is_others && total.reason.pid == pid) return &total;
  }
  return nullptr;
}

// A history and the time.
struct Subject {
  explicit Subject(HistoryPool& pool_in) : pool(pool_in) { history.Begin(now); }
  void Enter(Phase phase, std::uint64_t for_ns, const Reason& reason = {}) {
    history.Change(pool, phase, reason, {now, gpu});
    if (phase == Phase::kRunning) gpu += for_ns / 2;
    now += for_ns;
  }
  Account Since(std::uint64_t back_ns) const { return history.Since(pool, now - back_ns, {now, gpu}); }

  HistoryPool& pool;
  History history;
  std::uint64_t now = kStart;
  std::uint64_t gpu = 0;
};

}  // namespace

TEST_CASE("phases, causes and GPU time add up to what happened") {
  HistoryPool pool;
  Subject subject(pool);
  subject.now += 3 * kS;  // untracked
  for (int i = 0; i < 100; ++i) {
    subject.Enter(Phase::kRunning, 4 * kMs);
    subject.Enter(Phase::kHeld, 2 * kMs, For(7));
    subject.Enter(Phase::kHeld, kMs, For(8, policy::Why::kTurn));
    subject.Enter(Phase::kIdle, 3 * kMs);
  }
  const Account all = subject.history.Since(pool, 0, {subject.now, subject.gpu});
  CHECK(all.from_ns == kStart);
  CHECK(Sum(all) == 4 * kS);
  CHECK(In(all, Phase::kUntracked) == 3 * kS);
  CHECK(In(all, Phase::kRunning) == 400 * kMs);
  CHECK(In(all, Phase::kHeld) == 300 * kMs);
  CHECK(all.gpu_ns == 200 * kMs);
  REQUIRE(Find(all, 7) != nullptr);
  CHECK(Find(all, 7)->count == 100);
  CHECK(Find(all, 7)->total_ns == 200 * kMs);
  CHECK(Find(all, 7)->longest_ns == 2 * kMs);
  CHECK(Find(all, 8)->total_ns == 100 * kMs);
  CHECK(all.spans.size() == history::kSpans);
  CHECK(all.spans.back().reason == For(8, policy::Why::kTurn));
}

TEST_CASE("a time window cuts long phases exactly, including the current one") {
  HistoryPool pool;
  Subject subject(pool);
  subject.Enter(Phase::kRunning, 5 * kS);
  subject.Enter(Phase::kHeld, 5 * kS, For(7));
  const Account account = subject.Since(7 * kS);
  CHECK(account.to_ns - account.from_ns == 7 * kS);
  CHECK(In(account, Phase::kRunning) == 2 * kS);
  CHECK(In(account, Phase::kHeld) == 5 * kS);
  CHECK(account.gpu_ns == kS);
  CHECK(Find(account, 7)->count == 1);
  CHECK(Find(account, 7)->longest_ns == 5 * kS);
  CHECK(In(subject.Since(kS), Phase::kHeld) == kS);
  CHECK(subject.Since(kS).spans.at(0).start_ns == subject.now - kS);
}

TEST_CASE("a hundred thousand short holds lose nothing but the exact spans") {
  HistoryPool pool;
  Subject subject(pool);
  for (int i = 0; i < 100'000; ++i) {
    subject.Enter(Phase::kHeld, 30'000, For(7));
    subject.Enter(Phase::kRunning, 70'000);
  }
  const Account account = subject.Since(20 * kS);
  CHECK(account.from_ns == kStart);
  CHECK(In(account, Phase::kHeld) == 3 * kS);
  CHECK(Find(account, 7)->count == 100'000);
  CHECK(Find(account, 7)->total_ns == 3 * kS);
  const Account half = subject.Since(5 * kS);
  CHECK(Sum(half) == 5 * kS);
  CHECK(Find(half, 7)->count > 49'000);
  CHECK(Find(half, 7)->count < 51'000);
}

TEST_CASE("causes that do not fit a bucket are summed up as others, and no time is lost") {
  HistoryPool pool;
  Subject subject(pool);
  for (int i = 0; i < 100; ++i)
    subject.Enter(Phase::kHeld, kMs, For(100 + static_cast<std::uint64_t>(i)));
  const Account account = subject.Since(kS);
  std::uint64_t total = 0;
  std::uint64_t count = 0;
  bool others = false;
  for (const HeldTotal& cause : account.causes) {
    total += cause.total_ns;
    count += cause.count;
    others = others || cause.is_others;
  }
  CHECK(others);
  CHECK(total == 100 * kMs);
  CHECK(count == 100);
}

TEST_CASE("an account of a crowd is bounded, and sums up what it cannot name as others") {
  HistoryPool pool;
  Subject subject(pool);
  for (std::uint64_t i = 0; i < 1'000; ++i)
    subject.Enter(Phase::kHeld, 500 * kMs, For(100 + i));
  const Account account = subject.Since(1'000 * kS);
  CHECK(account.causes.size() == history::kTotals);
  std::uint64_t total = 0;
  for (const HeldTotal& cause : account.causes)
    total += cause.total_ns;
  CHECK(total == 500 * kS);
  CHECK(subject.history.Since(pool, 0, {subject.now, 0}, History::Detail::kTimes).causes.empty());
}

TEST_CASE("overwritten history is reported as unknown") {
  HistoryPool pool;
  Subject quiet(pool);
  quiet.Enter(Phase::kRunning, kS);
  quiet.Enter(Phase::kIdle, 0);
  Subject busy(pool);
  for (std::size_t i = 0; i < history::kBuckets + 10; ++i) {
    busy.Enter(Phase::kRunning, kS);
    busy.Enter(Phase::kIdle, kS);
  }
  const Account account = busy.history.Since(pool, 0, {busy.now, busy.gpu});
  CHECK(account.from_ns > kStart);
  CHECK(Sum(account) == account.to_ns - account.from_ns);
  // Its only bucket is gone; its current phase is not.
  const Account rest = quiet.history.Since(pool, 0, {quiet.now + kS, quiet.gpu});
  CHECK(rest.from_ns == quiet.now);
  CHECK(In(rest, Phase::kIdle) == kS);
  quiet.now += kS;
  quiet.Enter(Phase::kRunning, kS);
  quiet.Enter(Phase::kIdle, kS);
  CHECK(In(quiet.Since(100 * kS), Phase::kRunning) == kS);
}

TEST_CASE("a client can claim no more GPU time than has passed") {
  HistoryPool pool;
  Subject subject(pool);
  subject.Enter(Phase::kRunning, 0);
  subject.now += 100 * kMs;
  subject.gpu = 1'000'000 * kS;
  CHECK(subject.Since(kS).gpu_ns == 100 * kMs);
  CHECK(subject.history.Recent({subject.now, subject.gpu}).gpu_ns == 100 * kMs);
  subject.Enter(Phase::kIdle, 100 * kMs);
  subject.gpu = 0;
  subject.Enter(Phase::kRunning, 100 * kMs);
  CHECK(subject.Since(kS).gpu_ns <= 300 * kMs);
}

TEST_CASE("GPU time of the last second is known only while it is measured") {
  HistoryPool pool;
  Subject subject(pool);
  CHECK(subject.history.Recent({subject.now, 0}).time_ns == 0);
  subject.Enter(Phase::kRunning, 0);
  for (int i = 0; i < 100; ++i) {
    subject.now += 100 * kMs;
    subject.gpu += (i < 50 ? 100 : 25) * kMs;
    subject.history.Sample(pool, {subject.now, subject.gpu});
  }
  const History::Recently recent = subject.history.Recent({subject.now, subject.gpu});
  CHECK(recent.time_ns >= kS);
  CHECK(recent.time_ns <= kS + kS / 2);
  CHECK(recent.gpu_ns * 4 == recent.time_ns);
  // It always ran, and used a larger part of the device earlier than now.
  CHECK(subject.Since(4 * kS).gpu_ns == kS);
  const std::uint64_t whole = subject.Since(8 * kS).gpu_ns;  // 3 s of all, 5 s of a quarter
  CHECK(whole > 4 * kS);
  CHECK(whole < 4 * kS + kS / 2);
  CHECK(In(subject.Since(8 * kS), Phase::kRunning) == 8 * kS);
  subject.Enter(Phase::kUntracked, kS);
  CHECK(subject.history.Recent({subject.now, subject.gpu}).time_ns == 0);
}

TEST_CASE("missed deadlines are counted where they happened") {
  HistoryPool pool;
  Subject subject(pool);
  subject.Enter(Phase::kRunning, 10 * kS);
  subject.history.AddLate(pool, {subject.now, subject.gpu});
  subject.Enter(Phase::kIdle, 10 * kS);
  CHECK(subject.history.Since(pool, 0, {subject.now, subject.gpu}).late == 1);
  CHECK(subject.Since(5 * kS).late == 0);
}

TEST_CASE("any window of any run adds up") {
  std::mt19937_64 random(11);
  HistoryPool pool;
  std::vector<Subject> subjects;
  subjects.reserve(5);
  for (int i = 0; i < 5; ++i)
    subjects.emplace_back(pool);
  for (int step = 0; step < 20'000; ++step) {
    Subject& subject = subjects[random() % subjects.size()];
    const std::uint64_t length = random() % 50 == 0 ? random() % (5 * kS) : random() % (3 * kMs);
    subject.Enter(static_cast<Phase>(random() % kPhases), length, For(1 + random() % 9));
    if (random() % 20 != 0) continue;
    const Account account = subject.Since(random() % (20 * kS));
    REQUIRE(Sum(account) == account.to_ns - account.from_ns);
    REQUIRE(account.gpu_ns <= Sum(account));
    std::uint64_t held = 0;
    for (const HeldTotal& cause : account.causes)
      held += cause.total_ns;
    // Rounding may lose a few ns in each bucket that is cut.
    REQUIRE(held <= In(account, Phase::kHeld) + 100);
    REQUIRE(held + 100 >= In(account, Phase::kHeld));
  }
}
