// The calendar between processes: they see each other's bookings, and any of them may die or stop anywhere.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/catch.h"
#include "tools/softgpu/model/calendar.h"
#include "tools/softgpu/model/clock.h"

using softgpu::Booking;
using softgpu::Calendar;
using softgpu::now_ns;

namespace {

constexpr uint64_t kOneMs = 1'000'000;

// A calendar in memory that children of fork share.
class Shared {
 public:
  Shared() {
    void* p = mmap(nullptr, sizeof(Calendar), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED);
    calendar_ = static_cast<Calendar*>(p);
    calendar_->init(80);
  }
  ~Shared() { munmap(static_cast<void*>(calendar_), sizeof(Calendar)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Calendar* operator->() { return calendar_; }

 private:
  Calendar* calendar_;
};

pid_t in_child(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  return pid;
}

void reap(pid_t pid) {
  REQUIRE(waitpid(pid, nullptr, 0) == pid);
}

Booking book(Calendar& calendar, uint32_t units, uint64_t duration) {
  const uint64_t now = now_ns();
  return calendar.book({.pid = getpid(), .units = units, .now_ns = now, .arrival_ns = now, .duration_ns = duration});
}

}  // namespace

TEST_CASE("a booking of another process counts, also after that process has ended") {
  Shared calendar;
  const uint64_t before = now_ns();
  reap(in_child([&] { book(*calendar.operator->(), 80, 500 * kOneMs); }));
  const Booking mine = book(*calendar.operator->(), 80, kOneMs);
  CHECK(mine.start_ns >= before + 500 * kOneMs);
}

TEST_CASE("later bookings of a dead process are freed") {
  Shared calendar;
  reap(in_child([&] {
    // Three packets, one at the head of each of three queues; the first begins at once.
    for (int i = 0; i < 3; ++i)
      book(*calendar.operator->(), 80, 500 * kOneMs);
  }));
  const Booking mine = book(*calendar.operator->(), 80, kOneMs);
  CHECK(mine.start_ns < now_ns() + 600 * kOneMs);
}

TEST_CASE("a process that is killed while it books does not block the others") {
  Shared calendar;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = in_child([&] {
    calendar->lock_and_abandon_for_test();
    if (write(ends[1], "", 1) == 1) pause();
  });
  char locked;
  REQUIRE(read(ends[0], &locked, 1) == 1);
  close(ends[0]);
  close(ends[1]);
  kill(pid, SIGKILL);
  reap(pid);
  const Booking mine = book(*calendar.operator->(), 80, kOneMs);
  CHECK(mine.end_ns == mine.start_ns + kOneMs);
  CHECK(book(*calendar.operator->(), 80, kOneMs).start_ns >= mine.end_ns);
}

TEST_CASE("the calendar stays valid when processes are killed at any point") {
  Shared calendar;
  for (int round = 0; round < 50; ++round) {
    const pid_t pid = in_child([&] {
      for (;;)
        book(*calendar.operator->(), 40, 1'000);
    });
    usleep(2'000);  // anywhere
    kill(pid, SIGKILL);
    reap(pid);
    const Booking a = book(*calendar.operator->(), 80, 1'000);
    const Booking b = book(*calendar.operator->(), 80, 1'000);
    REQUIRE(b.start_ns >= a.end_ns);
  }
}

TEST_CASE("a stopped process occupies only what it had booked") {
  Shared calendar;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t pid = in_child([&] {
    book(*calendar.operator->(), 80, 20 * kOneMs);
    (void)!write(ready[1], "r", 1);
    for (;;)
      pause();
  });
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  kill(pid, SIGSTOP);
  CHECK(book(*calendar.operator->(), 80, kOneMs).start_ns <= now_ns() + 20 * kOneMs);
  kill(pid, SIGKILL);
  reap(pid);
}
