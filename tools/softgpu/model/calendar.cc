#include "tools/softgpu/model/calendar.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/softgpu/model/clock.h"

namespace softgpu {

namespace {

// The peak number of busy units during [from, to).
uint32_t peak_usage(std::span<const Booking> bookings, uint64_t from, uint64_t to) {
  const auto usage_at = [&](uint64_t t) {
    uint32_t sum = 0;
    for (const Booking& b : bookings) {
      if (b.start_ns <= t && t < b.end_ns) sum += b.units;
    }
    return sum;
  };
  uint32_t peak = usage_at(from);
  for (const Booking& b : bookings) {
    // Usage only rises where a booking starts.
    if (b.start_ns > from && b.start_ns < to) peak = std::max(peak, usage_at(b.start_ns));
  }
  return peak;
}

bool is_dead(int32_t pid) {
  return kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

uint64_t place(std::span<const Booking> bookings, uint32_t capacity_units, uint64_t floor_ns, uint64_t arrival_ns,
               uint32_t units, uint64_t duration_ns) {
  uint64_t earliest = std::max(arrival_ns, floor_ns);
  for (const Booking& b : bookings) {
    if (b.arrival_ns <= arrival_ns) earliest = std::max(earliest, b.start_ns);
  }
  uint64_t start = earliest;
  // Units become free only when a booking ends, so only these instants need to be tried. The last end always works:
  // nothing is booked after it.
  for (;;) {
    if (peak_usage(bookings, start, start + duration_ns) + units <= capacity_units) return start;
    uint64_t next = UINT64_MAX;
    for (const Booking& b : bookings) {
      if (b.end_ns > start) next = std::min(next, b.end_ns);
    }
    if (next == UINT64_MAX) return start;
    start = next;
  }
}

class Calendar::Guard {
 public:
  explicit Guard(Calendar& calendar) : calendar_(calendar) { calendar_.acquire(); }
  ~Guard() {
    // relaxed: a hint for a message, ordered by the mutex where it matters.
    calendar_.holder_pid_.store(0, std::memory_order_relaxed);
    pthread_mutex_unlock(&calendar_.lock_);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Calendar& calendar_;
};

void Calendar::init(uint32_t units) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&lock_, &attr);
  pthread_mutexattr_destroy(&attr);
  units_ = units;
}

void Calendar::acquire() {
  for (bool reported = false;;) {
    const timespec limit = to_timespec(now_ns() + 1'000'000'000u);
    const int rc = pthread_mutex_clocklock(&lock_, CLOCK_MONOTONIC, &limit);
    if (rc == 0) break;
    if (rc == EOWNERDEAD) {
      repair();
      pthread_mutex_consistent(&lock_);
      break;
    }
    if (rc != ETIMEDOUT) {
      std::fprintf(stderr,
                   "softgpu: the shared device's lock is unusable (%s): end its users and run 'softgpuctl clean'\n",
                   std::strerror(rc));
      std::abort();
    }
    if (!reported) {
      // The holder is alive (its death would end the wait) but stopped within these few instructions.
      std::fprintf(stderr, "softgpu: process %d was stopped while it held the device's lock: continue or kill it\n",
                   holder_pid_.load(std::memory_order_relaxed));
      reported = true;
    }
  }
  holder_pid_.store(getpid(), std::memory_order_relaxed);
}

void Calendar::repair() {
  // relaxed: the mutex orders all accesses to count_; it is atomic so that a death cannot leave a torn value.
  uint32_t count = count_.load(std::memory_order_relaxed);
  if (count > kBookingCapacity) count = 0;
  count_.store(count, std::memory_order_relaxed);
  for (uint32_t i = 0; i < count_.load(std::memory_order_relaxed);) {
    const Booking& b = bookings_[i];
    const bool sane = b.end_ns > b.start_ns && b.start_ns >= b.arrival_ns && b.units >= 1 && b.units <= units_;
    if (sane) {
      ++i;
    } else {
      remove(i);
    }
  }
}

void Calendar::remove(uint32_t index) {
  const uint32_t last = count_.load(std::memory_order_relaxed) - 1;
  bookings_[index] = bookings_[last];
  // release: a process that dies here, or before, leaves every booking below `count_` complete.
  count_.store(last, std::memory_order_release);
}

void Calendar::append(const Booking& booking) {
  uint32_t count = count_.load(std::memory_order_relaxed);
  if (count == kBookingCapacity) {
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < count; ++i) {
      if (bookings_[i].end_ns < bookings_[oldest].end_ns) oldest = i;
    }
    floor_ns_ = std::max(floor_ns_, bookings_[oldest].end_ns);
    remove(oldest);
    --count;
  }
  bookings_[count] = booking;
  // release: the booking is complete before the count covers it, see remove().
  count_.store(count + 1, std::memory_order_release);
}

void Calendar::forget_old(uint64_t now_ns) {
  for (uint32_t i = 0; i < count_.load(std::memory_order_relaxed);) {
    if (bookings_[i].end_ns + kBackdateNs < now_ns) {
      remove(i);
    } else {
      ++i;
    }
  }
}

bool Calendar::forget_dead(uint64_t now_ns, int32_t own_pid) {
  bool removed = false;
  for (uint32_t i = 0; i < count_.load(std::memory_order_relaxed);) {
    const Booking& b = bookings_[i];
    if (b.start_ns > now_ns && b.pid != own_pid && is_dead(b.pid)) {
      remove(i);
      removed = true;
    } else {
      ++i;
    }
  }
  return removed;
}

Booking Calendar::book(const BookingRequest& request) {
  Guard guard(*this);
  forget_old(request.now_ns);
  Booking booking{};
  booking.pid = request.pid;
  booking.units = std::clamp<uint32_t>(request.units, 1, units_);
  const uint64_t oldest_arrival = request.now_ns > kBackdateNs ? request.now_ns - kBackdateNs : 0;
  booking.arrival_ns = std::max(request.arrival_ns, oldest_arrival);
  const uint64_t duration = std::max<uint64_t>(request.duration_ns, 1);
  const auto start = [&] {
    return place({bookings_, count_.load(std::memory_order_relaxed)}, units_, floor_ns_, booking.arrival_ns,
                 booking.units, duration);
  };
  booking.start_ns = start();
  // Only work that must wait checks whether the processes ahead of it are alive, which costs a system call for each.
  if (booking.start_ns > request.now_ns && forget_dead(request.now_ns, request.pid)) booking.start_ns = start();
  booking.end_ns = booking.start_ns + duration;
  append(booking);
  return booking;
}

uint32_t Calendar::pending(uint64_t now_ns) {
  Guard guard(*this);
  uint32_t pending = 0;
  for (uint32_t i = 0; i < count_.load(std::memory_order_relaxed); ++i)
    pending += bookings_[i].end_ns > now_ns;
  return pending;
}

void Calendar::lock_and_abandon_for_test() {
  acquire();
}

}  // namespace softgpu
