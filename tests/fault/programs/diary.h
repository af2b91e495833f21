// A tenant's record of itself, in a file that outlives it: read by tests/fault/diary.py while it runs, and after a kill
// -9. The layout is fixed by the assertions below and repeated in diary.py.
//
// On a shared machine, "held" must be distinguished from "did not get a CPU". A call's noise is the time in which it
// could not have continued, with or without xschedd:
//   - the launching thread was runnable and not running (run_delay of /proc/thread-self/schedstat), and
//   - a canary thread of the process, which only sleeps 2 ms at a time, was late by more than 1 ms: then other threads
//     that the call depends on (the daemon's, the software GPU's, the agent's) did not get a processor either.
// Both are sums that only grow; a call's part is the difference. Thread rule: one launching thread, one canary.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace fault {

using Number = std::atomic<std::uint64_t>;

enum class Call : std::uint64_t { kLaunch = 1, kCopy, kSynchronize, kEvent, kOther };

struct CallRecord {
  Number start_ns, end_ns, noise_ns, kind;
};
struct BusyRecord {
  Number start_ns, end_ns;  // end 0: still busy
};

inline constexpr std::size_t kCalls = 4096;   // the last long calls
inline constexpr std::size_t kSpans = 65536;  // the last busy spans

struct Pages {
  Number rounds;         // of work, each checked
  Number wrong;          // results that were not as computed on the host
  Number in_call_since;  // CLOCK_MONOTONIC; 0: not in a call
  Number longest_ns;     // longest call, less its noise
  Number longest_raw_ns;
  Number calls;  // written so far
  Number spans;
  Number canary_late_ns;
  CallRecord call[kCalls];
  BusyRecord span[kSpans];
};
static_assert(offsetof(Pages, call) == 64 && offsetof(Pages, span) == 64 + 32 * kCalls);

inline std::uint64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

class Diary {
 public:
  explicit Diary(const char* path) {
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* address = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(Pages)) == 0) {
      address = mmap(nullptr, sizeof(Pages), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (address == MAP_FAILED) {
      std::fprintf(stderr, "tenant: cannot write %s\n", path);
      std::_Exit(2);
    }
    close(fd);
    pages_ = static_cast<Pages*>(address);
    schedstat_ = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    std::thread([this] { Sing(); }).detach();
  }

  Pages& Get() { return *pages_; }

  // A HIP call of the launching thread, timed.
  template <typename F>
  auto Timed(Call kind, F call) {
    const std::uint64_t noise_before = Noise();
    const std::uint64_t start = Now();
    pages_->in_call_since = start;
    const auto result = call();
    const std::uint64_t end = Now();
    pages_->in_call_since = 0;
    if (end - start > kLong) Note(kind, start, end, Noise() - noise_before);
    return result;
  }

  void BeginBusy() {
    const std::uint64_t n = pages_->spans;
    pages_->span[n % kSpans].end_ns = 0;
    pages_->span[n % kSpans].start_ns = Now();
    pages_->spans = n + 1;
  }
  void EndBusy() { pages_->span[(pages_->spans - 1) % kSpans].end_ns = Now(); }

 private:
  static constexpr std::uint64_t kLong = 5'000'000;
  static constexpr std::uint64_t kPeriod = 2'000'000;
  static constexpr std::uint64_t kTolerated = 1'000'000;

  void Note(Call kind, std::uint64_t start, std::uint64_t end, std::uint64_t noise) {
    const std::uint64_t took = end - start;
    const std::uint64_t own = took > noise ? took - noise : 0;
    if (own > pages_->longest_ns) pages_->longest_ns = own;
    if (took > pages_->longest_raw_ns) pages_->longest_raw_ns = took;
    const std::uint64_t n = pages_->calls;
    CallRecord& record = pages_->call[n % kCalls];
    record.start_ns = start, record.end_ns = end, record.noise_ns = noise;
    record.kind = static_cast<std::uint64_t>(kind);
    pages_->calls = n + 1;
  }

  std::uint64_t Noise() const {
    char text[96] = "";
    std::uint64_t delay = 0;
    if (schedstat_ >= 0 && pread(schedstat_, text, sizeof text - 1, 0) > 0) {
      const char* second = std::strchr(text, ' ');
      if (second != nullptr) delay = std::strtoull(second, nullptr, 10);
    }
    const std::uint64_t now = Now();
    const std::uint64_t due = canary_due_ns_ + kTolerated;
    return delay + pages_->canary_late_ns + (now > due ? now - due : 0);
  }

  void Sing() {
    for (;;) {
      canary_due_ns_ = Now() + kPeriod;
      const timespec nap{0, kPeriod};
      nanosleep(&nap, nullptr);
      const std::uint64_t now = Now();
      const std::uint64_t due = canary_due_ns_ + kTolerated;
      if (now > due) pages_->canary_late_ns += now - due;
    }
  }

  Pages* pages_ = nullptr;
  int schedstat_ = -1;
  Number canary_due_ns_{~std::uint64_t{0} / 2};
};

}  // namespace fault
