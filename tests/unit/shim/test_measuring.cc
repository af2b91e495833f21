// Which markers of settled work are queried, by whom, and what happens to them.
#include "client-shim/core/measuring.h"
#include "tests/catch.h"
#include "tests/unit/shim/fake_vendor.h"

using namespace xschedd::shim;

namespace {

constexpr LaunchKey kKind = 7;

struct MeasuredDevice {
  FakeVendor vendor;
  Captures captures;
  MarkerPool markers{0, vendor.Table()};
  TrackedStreams streams;
  DeviceTimes times{vendor.Table()};
  Measuring measuring{vendor.Table(), &captures, &markers, &streams, &times};
  std::mutex mutex;
  std::unique_lock<std::mutex> lock{mutex};
  const StreamKey stream{reinterpret_cast<void*>(16), 0};

  MeasuredDevice() { streams.Find(stream); }
  // A marker that was reached at that time.
  void* Reached(std::uint64_t time_ns) {
    void* const marker = vendor.Table()->create_marker(0);
    vendor.FinishMarker(marker, time_ns);
    return marker;
  }
  void Push(void* start, void* marker, LaunchKey kind = kKind, void* stop = nullptr) {
    SettledWork done;
    done.work = InFlight{1, 0};
    done.mix.Add(kind);
    done.start = start;
    done.marker = marker;
    done.stop = stop;
    done.timed = stop != nullptr ? kind : 0;
    done.from = TimedFrom::kMarker;
    measuring.Push(stream, done);
  }
  std::size_t Free() {
    std::size_t count = 0;
    const std::size_t made = vendor.created;
    while (markers.UnlockToTake(lock) != nullptr && vendor.created == made)
      ++count;
    return count;
  }
};

}  // namespace

TEST_CASE("work takes from its start marker to the one behind it, and then from marker to marker", "[measuring]") {
  MeasuredDevice device;
  device.Push(device.Reached(1'000'000), device.Reached(1'100'000), 1);
  device.Push(nullptr, device.Reached(1'300'000), 2);
  device.measuring.UnlockToMeasure(device.lock);
  CHECK(device.lock.owns_lock());
  CHECK(device.times.TotalNs() == 300'000);
  // The gap until the next start marker is nobody's.
  device.Push(device.Reached(900'000'000), device.Reached(900'050'000), 3);
  device.measuring.UnlockToMeasure(device.lock);
  CHECK(device.times.TotalNs() == 350'000);
  CHECK(device.times.Costs().CostNs(1) == 100'000);
  CHECK(device.times.Costs().CostNs(2) == 200'000);
  CHECK(device.times.Costs().CostNs(3) == 50'000);
}

TEST_CASE("markers are free once they have been asked, but for the clock's origin", "[measuring]") {
  MeasuredDevice device;
  device.Push(device.Reached(1'000), device.Reached(2'000));
  device.Push(nullptr, device.Reached(3'000));
  device.measuring.UnlockToMeasure(device.lock);
  CHECK(device.Free() == 2);
}

TEST_CASE("the stop event of a timed launch is asked for its time, and then is free as well", "[measuring]") {
  MeasuredDevice device;
  for (const std::uint64_t at : {1'000'000, 2'000'000}) {
    void* const stop = device.Reached(0);
    device.vendor.LaunchTimed(stop, nullptr, Stamp{at + 60'000, at + 100'000});
    device.vendor.FinishMarker(stop, at + 100'000);
    device.Push(device.Reached(at), device.Reached(at + 100'000), kKind, stop);
  }
  device.measuring.UnlockToMeasure(device.lock);
  CHECK(device.times.Costs().SettledCostNs(kKind) == 40'000);
  CHECK(device.Free() == 5);
}

TEST_CASE("while one thread measures no other does, and it takes what comes meanwhile", "[measuring]") {
  MeasuredDevice device;
  device.Push(device.Reached(1'000'000), device.Reached(1'100'000));
  void* const later = device.Reached(1'200'000);
  device.vendor.while_asking = [&] {
    REQUIRE(device.mutex.try_lock());  // it has let go of it
    std::unique_lock<std::mutex> other(device.mutex, std::adopt_lock);
    CHECK(device.measuring.IsUnderWay());
    device.Push(nullptr, later);
    device.measuring.UnlockToMeasure(other);
    CHECK(device.times.TotalNs() == 0);
  };
  device.measuring.UnlockToMeasure(device.lock);
  CHECK_FALSE(device.measuring.IsUnderWay());
  CHECK(device.times.TotalNs() == 200'000);
}

TEST_CASE("what is dropped counts for nothing, also while it is being asked", "[measuring]") {
  MeasuredDevice device;
  const bool is_asked = GENERATE(false, true);
  device.Push(device.Reached(1'000'000), device.Reached(1'100'000));
  device.Push(nullptr, device.Reached(1'200'000));
  if (is_asked) {
    device.vendor.while_asking = [&] {
      const std::lock_guard other(device.mutex);
      device.measuring.Drop();
    };
  } else {
    device.measuring.Drop();
  }
  device.measuring.UnlockToMeasure(device.lock);
  CHECK(device.times.TotalNs() == 0);
  CHECK(device.times.Costs().CostNs(kKind) == 0);
  CHECK(device.Free() == (is_asked ? 2 : 3));  // one is the origin
}

TEST_CASE("the markers of a device that was reset are not given back", "[measuring]") {
  MeasuredDevice device;
  device.Push(device.Reached(1'000'000), device.Reached(1'100'000));
  device.measuring.ForgetMarkers();
  device.measuring.UnlockToMeasure(device.lock);
  CHECK(device.times.TotalNs() == 0);
  CHECK(device.Free() == 0);
}

TEST_CASE("once the process exits, markers are free without being asked", "[measuring]") {
  MeasuredDevice device;
  device.captures.ForbidCalls();
  device.vendor.while_asking = [] { FAIL("the runtime is called"); };
  device.Push(device.Reached(1'000'000), device.Reached(1'100'000));
  device.measuring.UnlockToMeasure(device.lock);
  CHECK(device.times.TotalNs() == 0);
  CHECK(device.Free() == 2);
}

TEST_CASE("work on a stream that is forgotten is measured all the same", "[measuring]") {
  MeasuredDevice device;
  device.streams.ForgetAll();
  device.Push(device.Reached(1'000'000), device.Reached(1'100'000));
  device.measuring.UnlockToMeasure(device.lock);
  CHECK(device.times.TotalNs() == 100'000);
  CHECK(device.streams.Size() == 0);
}
