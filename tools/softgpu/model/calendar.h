// The time line of one resource of a device (its compute units, or one copy engine), shared by all processes.
//
// A resource has `units` that can be busy at the same time. Work is booked when it arrives: its duration is known, so
// the calendar can say at once when it starts and ends, and the process then merely sleeps until the end. Processes do
// not wait for each other: none is woken by another, and a process that dies leaves at most the booking of the packet
// at the head of each of its hardware queues.
//
// Order: first come, first served by time of arrival, without overtaking: work that arrived earlier never starts later,
// even when later work would fit beside what runs. As each hardware queue books only the packet at its head, saturated
// queues take turns. Work may be booked a little after it arrived (the host thread woke late): it may then start in the
// past, as far as units were free then, so that a saturated device stays 100 % busy in simulated time.
//
// Layout: lives in shared memory; guarded by a robust mutex. A writer may die between any two stores: each intermediate
// state is a valid calendar (a booking is complete before `count` covers it; removal copies the last one down before
// `count` shrinks, so a death leaves a duplicate, which expires). What a dead writer left is checked nevertheless.
// Thread rule: any thread of any process.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <span>

namespace softgpu {

struct Booking {
  uint64_t arrival_ns;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t units;
  int32_t pid;
};

struct BookingRequest {
  int32_t pid;
  uint32_t units;        // clamped to 1 .. units of the calendar
  uint64_t now_ns;       // the caller's clock
  uint64_t arrival_ns;   // when the work could have started on an empty device; at most kBackdateNs before now
  uint64_t duration_ns;  // at least 1
};

// How far in the past work may start, and so how long past bookings are remembered.
inline constexpr uint64_t kBackdateNs = 20'000'000;
// If there are more past bookings than this, the oldest are forgotten early; then nothing may start before their end.
inline constexpr uint32_t kBookingCapacity = 256;

// Where work that arrives at `arrival_ns` starts. Pure.
uint64_t place(std::span<const Booking> bookings, uint32_t capacity_units, uint64_t floor_ns, uint64_t arrival_ns,
               uint32_t units, uint64_t duration_ns);

class Calendar {
 public:
  // Call once, on zeroed memory that no other process uses yet.
  void init(uint32_t units);

  Booking book(const BookingRequest& request);

  uint32_t units() const { return units_; }
  // Bookings that have not ended at `now_ns`; for display and tests.
  uint32_t pending(uint64_t now_ns);

  // Tests only: takes the lock and never releases it, like a process that is killed while booking.
  void lock_and_abandon_for_test();

 private:
  class Guard;
  void acquire();
  void repair();
  void forget_old(uint64_t now_ns);
  bool forget_dead(uint64_t now_ns, int32_t own_pid);
  void remove(uint32_t index);
  void append(const Booking& booking);

  pthread_mutex_t lock_;
  std::atomic<int32_t> holder_pid_;  // the process in the critical section; only for a message
  uint32_t units_;
  uint64_t floor_ns_;
  std::atomic<uint32_t> count_;
  Booking bookings_[kBookingCapacity];
};
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<int32_t>::is_always_lock_free);

}  // namespace softgpu
