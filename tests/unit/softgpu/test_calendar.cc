// Where the calendar places work: side by side while units last, in order of arrival, without needless gaps.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "tools/softgpu/model/calendar.h"

using softgpu::Booking;
using softgpu::BookingRequest;
using softgpu::Calendar;
using softgpu::kBackdateNs;
using softgpu::kBookingCapacity;

namespace {

constexpr uint64_t kNow = 1'000'000'000;
constexpr uint64_t kMs = 1'000'000;

std::unique_ptr<Calendar> make_calendar(uint32_t units) {
  // As in shared memory: zeroed, then init.
  auto calendar = std::make_unique<Calendar>();
  calendar->init(units);
  return calendar;
}

BookingRequest request(uint32_t units, uint64_t arrival, uint64_t duration) {
  return {.pid = 1, .units = units, .now_ns = arrival, .arrival_ns = arrival, .duration_ns = duration};
}

// The most units booked at any instant.
uint32_t peak(const std::vector<Booking>& bookings) {
  uint32_t most = 0;
  for (const Booking& at : bookings) {
    uint32_t sum = 0;
    for (const Booking& b : bookings) {
      if (b.start_ns <= at.start_ns && at.start_ns < b.end_ns) sum += b.units;
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

TEST_CASE("work on an empty device starts when it arrives") {
  auto calendar = make_calendar(80);
  const Booking b = calendar->book(request(80, kNow, kMs));
  CHECK(b.start_ns == kNow);
  CHECK(b.end_ns == kNow + kMs);
}

TEST_CASE("work runs side by side while units last and then waits for the first that ends") {
  auto calendar = make_calendar(80);
  CHECK(calendar->book(request(40, kNow, 3 * kMs)).start_ns == kNow);
  CHECK(calendar->book(request(40, kNow + 1, 2 * kMs)).start_ns == kNow + 1);
  CHECK(calendar->book(request(1, kNow + 2, kMs)).start_ns == kNow + 1 + 2 * kMs);
}

TEST_CASE("work that would fit does not overtake work that arrived before it") {
  auto calendar = make_calendar(80);
  calendar->book(request(60, kNow, 5 * kMs));
  const Booking large = calendar->book(request(80, kNow + 1, kMs));
  CHECK(large.start_ns == kNow + 5 * kMs);
  const Booking small = calendar->book(request(10, kNow + 2, kMs));
  CHECK(small.start_ns >= large.start_ns);
}

TEST_CASE("saturated queues take turns") {
  auto calendar = make_calendar(80);
  // Each queue books its next packet when the one before ends, as packet processors do.
  std::array<uint64_t, 3> ends{};
  std::array<uint64_t, 3> busy{};
  for (uint64_t& end : ends)
    end = kNow;
  for (int i = 0; i < 300; ++i) {
    const auto next = static_cast<size_t>(std::min_element(ends.begin(), ends.end()) - ends.begin());
    const Booking b = calendar->book(request(80, ends[next], kMs));
    ends[next] = b.end_ns;
    busy[next] += kMs;
  }
  CHECK(busy[0] == 100 * kMs);
  CHECK(busy[1] == 100 * kMs);
  CHECK(busy[2] == 100 * kMs);
  CHECK(*std::max_element(ends.begin(), ends.end()) == kNow + 300 * kMs);
}

TEST_CASE("a queue whose thread wakes late keeps the device busy all the time") {
  auto calendar = make_calendar(80);
  uint64_t end = kNow;
  for (int i = 0; i < 100; ++i) {
    const uint64_t late = end + 70'000;
    const Booking b = calendar->book({.pid = 1, .units = 80, .now_ns = late, .arrival_ns = end, .duration_ns = kMs});
    CHECK(b.start_ns == end);
    end = b.end_ns;
  }
  CHECK(end == kNow + 100 * kMs);
}

TEST_CASE("work is not backdated over work that was booked in the meantime") {
  auto calendar = make_calendar(80);
  calendar->book(request(80, kNow + 1'000, kMs));
  const Booking late =
      calendar->book({.pid = 1, .units = 80, .now_ns = kNow + 2'000, .arrival_ns = kNow, .duration_ns = kMs});
  CHECK(late.start_ns == kNow + 1'000 + kMs);
}

TEST_CASE("backdating has a limit") {
  auto calendar = make_calendar(80);
  const uint64_t now = kNow + 10 * kBackdateNs;
  const Booking b = calendar->book({.pid = 1, .units = 1, .now_ns = now, .arrival_ns = kNow, .duration_ns = kMs});
  CHECK(b.start_ns == now - kBackdateNs);
}

TEST_CASE("units and durations out of range are clamped") {
  auto calendar = make_calendar(80);
  CHECK(calendar->book(request(1'000, kNow, kMs)).units == 80);
  const Booking b = calendar->book(request(0, kNow, 0));
  CHECK(b.units == 1);
  CHECK(b.end_ns == b.start_ns + 1);
}

TEST_CASE("the rules hold under any load, also beyond the number of bookings that are remembered") {
  auto calendar = make_calendar(80);
  std::mt19937_64 random(7);
  std::vector<Booking> all;
  uint64_t arrival = kNow;
  for (uint32_t i = 0; i < 3 * kBookingCapacity; ++i) {
    arrival += random() % 3'000;
    all.push_back(calendar->book(request(1 + static_cast<uint32_t>(random() % 80), arrival, 1 + random() % 9'000)));
  }
  CHECK(peak(all) <= 80);
  CHECK(std::is_sorted(all.begin(), all.end(),
                       [](const Booking& a, const Booking& b) { return a.start_ns < b.start_ns; }));
  CHECK(std::all_of(all.begin(), all.end(), [](const Booking& b) { return b.start_ns >= b.arrival_ns; }));
}

TEST_CASE("the same requests give the same bookings") {
  auto first = make_calendar(80);
  auto second = make_calendar(80);
  std::mt19937_64 random(11);
  for (int i = 0; i < 500; ++i) {
    const BookingRequest r = request(1 + static_cast<uint32_t>(random() % 80), kNow + 5'000u * static_cast<uint64_t>(i),
                                     1 + random() % 20'000);
    const Booking a = first->book(r);
    const Booking b = second->book(r);
    REQUIRE(std::memcmp(&a, &b, sizeof a) == 0);
  }
}
