// Streams of one process against each other: which wait for which and for how long (core/stream_order.h), and threads
// that wait (core/stream_gate.h).
#include <algorithm>
#include <atomic>
#include <climits>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "client-shim/core/stream_gate.h"
#include "common/clock.h"
#include "tests/catch.h"

namespace xschedd::shim {
namespace {

void* const kHigh = reinterpret_cast<void*>(0x10);
void* const kLow = reinterpret_cast<void*>(0x20);
void* const kOtherLow = reinterpret_cast<void*>(0x30);
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kForever = ~std::uint64_t{0} / 2;

TEST_CASE("a stream's number is the negative of the runtime's") {
  struct Row {
    int of_runtime, number;
  };
  for (const Row& row : {Row{0, 0}, Row{-5, 5}, Row{1, -1}, Row{-1000, 100}, Row{INT_MIN, 100}, Row{INT_MAX, -100}})
    CHECK(StreamPriorityFrom(row.of_runtime) == row.number);
}

TEST_CASE("a stream's work decides how long others wait") {
  constexpr std::uint64_t kAt = 1000 * kMs;
  struct Row {
    const char* what;
    StreamLoad load;
    std::uint64_t until;
  };
  for (const Row& row : {
           Row{"never had work", {5, false, 0, 0}, 0},
           Row{"lingers", {5, false, 0, kAt}, kAt + kStreamLingerNs},
           Row{"work of unknown length", {5, true, 0, kAt}, kAt + kStreamStillNs},
           Row{"work of 3 ms", {5, true, 3 * kMs, kAt}, kAt + kStreamStillNs + 6 * kMs},
           Row{"work of an hour", {5, true, 3'600'000 * kMs, kAt}, kAt + kStreamStillNs + kLongestKnownNs},
       }) {
    INFO(row.what);
    CHECK(BindsUntilNs(row.load) == row.until);
  }
}

TEST_CASE(
    "an order is mixed if a stream has another priority than the default; the highest and the default stream never "
    "wait") {
  CHECK_FALSE(StreamOrder().IsMixed());
  CHECK_FALSE(StreamOrder({{kHigh, 0}, {kLow, 0}}).IsMixed());
  const StreamOrder order({{kHigh, 5}, {kLow, -1}});
  CHECK(order.IsMixed());
  CHECK_FALSE(order.MayWait(kHigh));
  CHECK(order.MayWait(kLow));
  CHECK(order.MayWait(kOtherLow));  // an unknown stream has the default
  CHECK_FALSE(order.MayWait(nullptr));
  const StreamOrder below({{kLow, -1}});
  CHECK(below.IsMixed());
  CHECK(below.MayWait(kLow));
  CHECK_FALSE(below.MayWait(kOtherLow));
}

// A device with streams whose work begins and ends at random and sometimes stands still, and submissions to them that
// wait at the gate, in steps of time.
class Simulation {
 public:
  explicit Simulation(unsigned seed) : random_(seed) {
    const unsigned count = 2 + Below(6);
    for (unsigned i = 0; i < count; ++i)
      streams_.push_back({static_cast<int>(Below(4)), false, 0, 0});
    began_.assign(count, 0);
  }

  void Run() {
    for (now_ = kStepNs; now_ < 3000 * kMs; now_ += kStepNs) {
      for (StreamLoad& stream : streams_)
        Change(stream);
      for (std::size_t i = 0; i < streams_.size(); ++i)
        Submit(i);
    }
  }
  std::uint64_t waits = 0;

 private:
  static constexpr std::uint64_t kStepNs = 250'000;

  unsigned Below(unsigned end) { return std::uniform_int_distribution<unsigned>(0, end - 1)(random_); }
  void Change(StreamLoad& stream) {
    const unsigned chance = Below(400);
    if (chance < 2) stream = {stream.priority, true, Below(3) == 0 ? 0 : Below(200) * kMs, now_};
    if (chance >= 2 && chance < 60 && stream.has_work) stream.progress_ns = now_;
    if (chance == 60 && stream.has_work) stream = {stream.priority, false, 0, now_};
  }
  void Submit(std::size_t i) {
    const int priority = streams_[i].priority;
    if (began_[i] == 0) began_[i] = now_;
    std::uint64_t until = 0;
    bool is_any_moving = false;  // above, or was a moment ago
    for (const StreamLoad& other : streams_) {
      if (other.priority <= priority) continue;
      until = std::max(until, BindsUntilNs(other));
      const std::uint64_t patience = kStreamStillNs + std::min(2 * other.known_ns, kLongestKnownNs);
      is_any_moving = is_any_moving || (other.has_work ? now_ < other.progress_ns + patience
                                                       : now_ < other.progress_ns + kStreamLingerNs);
    }
    const bool is_let_through = until <= now_ || guard_.LetsThrough(priority, began_[i], now_);
    if (!is_let_through) {
      ++waits;
      REQUIRE(is_any_moving);                      // no stream waits for one that stands still, nor for an equal
      REQUIRE(now_ - began_[i] < kLongestHoldNs);  // no stream starves
      REQUIRE(priority < HighestWithPast());
      return;
    }
    began_[i] = 0;
  }
  int HighestWithPast() const {
    int highest = INT_MIN;
    for (const StreamLoad& stream : streams_)
      if (stream.progress_ns != 0) highest = std::max(highest, stream.priority);
    return highest;
  }

  std::mt19937 random_;
  std::uint64_t now_ = 0;
  std::vector<StreamLoad> streams_;
  std::vector<std::uint64_t> began_;  // to wait; 0: does not
  StreamGuard guard_;
};

TEST_CASE("waits are always bounded, and no stream waits for equals or for streams that stand still") {
  std::uint64_t waits = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Simulation simulation(seed);
    simulation.Run();
    waits += simulation.waits;
  }
  CHECK(waits > 1000);
}

// The streams of a device, set by a test.
class Work : public StreamLoads {
 public:
  std::uint64_t BindsUntilNs(const StreamOrder& order, int priority) const override {
    return order.Of(kHigh) > priority ? until_.load() : 0;
  }
  void Poll(std::uint64_t) override {
    const int now = lookers_.fetch_add(1) + 1;
    if (now > 1) were_several_ = true;
    ++looks_;
    std::this_thread::yield();
    --lookers_;
  }
  std::atomic<std::uint64_t> until_{kForever};
  std::atomic<std::uint64_t> looks_{0};
  std::atomic<int> lookers_{0};
  std::atomic<bool> were_several_{false};
};

class Submitter {
 public:
  Submitter(StreamGate* gate, void* stream, Work* work)
      : thread_([this, gate, stream, work] {
          gate->Wait(0, stream, work);
          has_passed_ = true;
        }) {}
  ~Submitter() { thread_.join(); }
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;
  bool HasPassed() const { return has_passed_; }

 private:
  std::atomic<bool> has_passed_{false};
  std::thread thread_;
};

TEST_CASE("lower streams' threads wait, one of them polls, and all continue at once") {
  StreamGate gate;
  Work work;
  CHECK_FALSE(gate.IsOn());
  gate.Set(StreamOrder({{kHigh, 5}, {kLow, 0}, {kOtherLow, 0}}));
  CHECK(gate.IsOn());
  gate.Wait(0, kHigh, &work);
  gate.Wait(0, nullptr, &work);
  CHECK(work.looks_ == 0);
  CHECK(gate.WaitedNs() == 0);

  SECTION("until higher streams have finished") {
    Submitter one(&gate, kLow, &work);
    Submitter other(&gate, kOtherLow, &work);
    while (work.looks_ < 3)
      std::this_thread::yield();
    work.until_ = 0;
  }
  SECTION("until its stream is as important") {
    Submitter one(&gate, kLow, &work);
    while (work.looks_ < 1)
      std::this_thread::yield();
    gate.Set(StreamOrder({{kHigh, 5}, {kLow, 5}}));
  }
  SECTION("until streams are no longer ordered") {
    Submitter one(&gate, kLow, &work);
    while (work.looks_ < 1)
      std::this_thread::yield();
    gate.Set(StreamOrder());
    CHECK_FALSE(gate.IsOn());
  }
  SECTION("until the gate is closed, and then never again") {
    {
      Submitter one(&gate, kLow, &work);
      while (work.looks_ < 1)
        std::this_thread::yield();
      gate.Close();
    }
    gate.Set(StreamOrder({{kHigh, 5}}));
    CHECK_FALSE(gate.IsOn());
    gate.Wait(0, kLow, &work);
  }
  SECTION("until the guard opens it, even if nothing ever finishes") {
    gate.Wait(0, kLow, &work);
    CHECK(gate.WaitedNs() >= kLongestHoldNs);
  }
  CHECK_FALSE(work.were_several_);
}

TEST_CASE("many threads all continue while the order changes") {
  StreamGate gate;
  Work work;
  std::atomic<int> passed{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      void* const stream = i % 3 == 0 ? kHigh : i % 3 == 1 ? kLow : kOtherLow;
      for (int turn = 0; turn < 200; ++turn) {
        if (gate.IsOn()) gate.Wait(i % 2, stream, &work);
        ++passed;
      }
    });
  }
  std::thread changer([&] {
    std::mt19937 random(7);
    while (!stop) {
      gate.Set(random() % 4 == 0 ? StreamOrder() : StreamOrder({{kHigh, static_cast<int>(random() % 3)}, {kLow, -1}}));
      work.until_ = random() % 2 == 0 ? 0 : MonotonicNs() + random() % 300'000;
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads)
    thread.join();
  stop = true;
  changer.join();
  CHECK(passed == 1600);
}

}  // namespace
}  // namespace xschedd::shim
