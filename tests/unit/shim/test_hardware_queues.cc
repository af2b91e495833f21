#include <sys/wait.h>

#include <atomic>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "client-shim/hip/hardware_queues.h"
#include "tests/catch.h"

using namespace xschedd::shim;
using namespace xschedd::shim::hip;

namespace {

constexpr int kLow = 0;
constexpr int kNormal = 1;
constexpr int kHigh = 2;
constexpr HsaStatus kInvalidQueue = 0x1006;

// The runtime below: what it was asked for, in order.
struct Runtime {
  std::vector<std::pair<void*, int>> calls;
  std::map<void*, int> in_force;
  void* refused = nullptr;
} g_runtime;

HsaStatus Set(void* queue, int priority) {
  g_runtime.calls.emplace_back(queue, priority);
  if (queue == g_runtime.refused) return kInvalidQueue;
  g_runtime.in_force[queue] = priority;
  return kHsaSuccess;
}

using Calls = std::vector<std::pair<void*, int>>;
Calls TakeCalls() {
  return std::exchange(g_runtime.calls, {});
}

void* const kOne = reinterpret_cast<void*>(0x1000);
void* const kTwo = reinterpret_cast<void*>(0x2000);

struct Fixture {
  Fixture() { g_runtime = {}; }
  HardwareQueues queues;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "queues have what the program asks for while nothing else is wanted") {
  queues.Add(kOne, Set);
  queues.Add(kTwo, Set);
  CHECK(TakeCalls().empty());
  CHECK(queues.Ask(kOne, kHigh, Set) == kHsaSuccess);
  CHECK(queues.Ask(kTwo, kNormal, Set) == kHsaSuccess);
  CHECK(TakeCalls() == Calls{{kOne, kHigh}, {kTwo, kNormal}});
  CHECK(queues.SetAll(QueuePriority::kProgram, Set) == QueuePriorityReport{2, 2});
  CHECK(TakeCalls().empty());
}

TEST_CASE_METHOD(Fixture, "a wanted priority is set once on each queue, and on later ones as they are made") {
  queues.Add(kOne, Set);
  CHECK(queues.SetAll(QueuePriority::kLow, Set) == QueuePriorityReport{1, 1});
  CHECK(queues.SetAll(QueuePriority::kLow, Set) == QueuePriorityReport{1, 1});
  CHECK(TakeCalls() == Calls{{kOne, kLow}});
  queues.Add(kTwo, Set);
  CHECK(TakeCalls() == Calls{{kTwo, kLow}});
  CHECK(queues.SetAll(QueuePriority::kLow, Set) == QueuePriorityReport{2, 2});
  CHECK(TakeCalls().empty());
}

TEST_CASE_METHOD(Fixture, "a priority that was wanted before there was any queue is the first one's") {
  CHECK(queues.SetAll(QueuePriority::kHigh, Set) == QueuePriorityReport{0, 0});
  queues.Add(kOne, Set);
  CHECK(TakeCalls() == Calls{{kOne, kHigh}});
}

TEST_CASE_METHOD(Fixture, "what the program asks for meanwhile is answered, and counts afterwards") {
  queues.Add(kOne, Set);
  queues.SetAll(QueuePriority::kLow, Set);
  TakeCalls();
  CHECK(queues.Ask(kOne, kHigh, Set) == kHsaSuccess);
  CHECK(TakeCalls().empty());
  queues.SetAll(QueuePriority::kProgram, Set);
  CHECK(TakeCalls() == Calls{{kOne, kHigh}});
}

TEST_CASE_METHOD(Fixture, "errors of the program's own calls are the runtime's") {
  queues.Add(kOne, Set);
  g_runtime.refused = kOne;
  CHECK(queues.Ask(kOne, kHigh, Set) == kInvalidQueue);
  g_runtime.refused = kTwo;
  CHECK(queues.Ask(kTwo, kHigh, Set) == kInvalidQueue);  // unknown
  queues.SetAll(QueuePriority::kLow, Set);
  TakeCalls();
  CHECK(queues.Ask(kOne, 7, Set) == kHsaSuccess);  // as this runtime answers
  CHECK(TakeCalls() == Calls{{kOne, 7}});
}

TEST_CASE_METHOD(Fixture, "a refusal is reported, and nothing of it is believed to be in force") {
  queues.Add(kOne, Set);
  queues.Add(kTwo, Set);
  g_runtime.refused = kOne;
  CHECK(queues.SetAll(QueuePriority::kHigh, Set) == QueuePriorityReport{2, 1});
  g_runtime.refused = nullptr;
  TakeCalls();
  CHECK(queues.SetAll(QueuePriority::kProgram, Set) == QueuePriorityReport{2, 2});
  CHECK(TakeCalls() == Calls{{kTwo, kNormal}});
}

TEST_CASE_METHOD(Fixture, "a destroyed queue is never touched again") {
  queues.Add(kOne, Set);
  queues.Add(kTwo, Set);
  queues.Remove(kOne);
  queues.Remove(kOne);
  CHECK(queues.SetAll(QueuePriority::kHigh, Set) == QueuePriorityReport{1, 1});
  CHECK(TakeCalls() == Calls{{kTwo, kHigh}});
}

TEST_CASE_METHOD(Fixture, "queues beyond the room are left alone") {
  std::vector<char> handles(HardwareQueues::kMaxQueues + 1);
  for (char& handle : handles)
    queues.Add(&handle, Set);
  CHECK(queues.SetAll(QueuePriority::kHigh, Set).queues == HardwareQueues::kMaxQueues);
  CHECK(g_runtime.in_force.count(&handles.back()) == 0);
  queues.Remove(&handles.back());
  CHECK(queues.SetAll(QueuePriority::kHigh, Set).queues == HardwareQueues::kMaxQueues);
}

TEST_CASE_METHOD(Fixture, "a child of fork leaves its parent's queues alone, even if the lock was held") {
  static HardwareQueues* shared = nullptr;
  shared = &queues;
  queues.Add(kOne, Set);
  // Forks inside the runtime's call, where the lock is held.
  const auto fork_inside = [](void*, int) -> HsaStatus {
    const pid_t child = fork();
    if (child == 0) {
      shared->Add(kTwo, Set);
      shared->Remove(kOne);
      const bool is_alone = shared->SetAll(QueuePriority::kHigh, Set) == QueuePriorityReport{0, 0};
      const bool passes = shared->Ask(kOne, kHigh, Set) == kHsaSuccess && g_runtime.in_force[kOne] == kHigh;
      _exit(is_alone && passes ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0 ? kHsaSuccess : kInvalidQueue;
  };
  CHECK(queues.SetAll(QueuePriority::kLow, fork_inside) == QueuePriorityReport{1, 1});
}

TEST_CASE_METHOD(Fixture, "threads make and destroy queues while priorities change") {
  std::atomic<bool> ends{false};
  static std::atomic<std::uint64_t> live{0};  // bit per queue: a call on one that is gone fails the test
  static std::atomic<bool> touched_gone{false};
  live = 0;
  const auto set = [](void* queue, int) -> HsaStatus {
    const auto bit = std::uint64_t{1} << reinterpret_cast<std::uintptr_t>(queue);
    if ((live.load() & bit) == 0) touched_gone = true;
    return kHsaSuccess;
  };
  std::vector<std::thread> threads;
  for (std::uintptr_t id = 1; id <= 4; ++id) {
    threads.emplace_back([&, id] {
      void* const queue = reinterpret_cast<void*>(id);
      for (int i = 0; i < 2'000; ++i) {
        live.fetch_or(std::uint64_t{1} << id);
        queues.Add(queue, set);
        queues.Ask(queue, kHigh, set);
        queues.Remove(queue);
        live.fetch_and(~(std::uint64_t{1} << id));
      }
    });
  }
  std::thread setter([&] {
    for (int i = 0; !ends; ++i)
      queues.SetAll(i % 2 == 0 ? QueuePriority::kHigh : QueuePriority::kProgram, set);
  });
  for (std::thread& thread : threads)
    thread.join();
  ends = true;
  setter.join();
  CHECK(!touched_gone);
}
