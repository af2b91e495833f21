// Threads that wait for room in a window: which of them polls, what each has seen, and that they are woken.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client-shim/core/room_waiters.h"
#include "tests/catch.h"

using namespace xschedd::shim;

TEST_CASE("one of those that wait polls, and another when it has gone", "[room_waiters]") {
  struct Step {
    int thread;  // that comes, or goes if it waits
    int polls;   // -1: none
  };
  struct Case {
    const char* name;
    std::vector<Step> steps;
  };
  const Case cases[] = {
      {"alone", {{0, 0}, {0, -1}}},
      {"the first of two", {{0, 0}, {1, 0}, {1, 0}, {0, -1}}},
      {"nobody takes over while it sleeps", {{0, 0}, {1, 0}, {0, -1}, {1, -1}}},
      {"who comes next does", {{0, 0}, {1, 0}, {0, -1}, {2, 2}, {1, 2}}},
  };
  for (const Case& each : cases) {
    CAPTURE(std::string(each.name));
    RoomWaiters waiters;
    std::unique_ptr<RoomWaiters::Waiting> threads[3];
    for (const Step& step : each.steps) {
      auto& thread = threads[step.thread];
      if (thread == nullptr) {
        thread = std::make_unique<RoomWaiters::Waiting>(&waiters);
      } else {
        thread.reset();
      }
      int polls = -1;
      for (int i = 0; i < 3; ++i) {
        if (threads[i] != nullptr && threads[i]->IsPoller()) polls = i;
      }
      CHECK(polls == step.polls);
    }
  }
}

TEST_CASE("more room is another number, and wakes who sleeps; waking alone is no more room", "[room_waiters]") {
  RoomWaiters waiters;
  std::mutex mutex;
  const std::uint32_t seen = waiters.Generation();
  waiters.Wake();
  CHECK(waiters.Generation() == seen);
  bool is_over = false;
  std::thread sleeper([&] {
    std::unique_lock lock(mutex);
    RoomWaiters::Waiting waiting(&waiters);
    // The time only ends a test that hangs.
    while (waiters.Generation() == seen)
      waiting.UnlockToSleep(lock, std::chrono::minutes(5));
    is_over = true;
  });
  {
    const std::lock_guard lock(mutex);
    waiters.NotifyRoom();
  }
  sleeper.join();
  CHECK(is_over);
  CHECK(waiters.Generation() != seen);
}
