// Which launches are admitted besides those in flight, and when the host is ahead of the device.
#include <string>
#include <vector>

#include "client-shim/core/admission.h"
#include "client-shim/core/stream_order.h"
#include "tests/catch.h"

using namespace xschedd::shim;

namespace {

constexpr std::uint64_t kNow = 1'000'000'000;
constexpr Window kWindow{500, 1}, kGuarded{500, 1, true};

struct Device {
  TrackedStreams streams;
  Admission admission{&streams};

  TrackedStream& Stream(std::uintptr_t handle) { return streams.Find(StreamKey{reinterpret_cast<void*>(handle), 0}); }
  // What a stream has in flight: one launch for each cost, the last progress so long ago.
  void Fill(std::uintptr_t handle, const std::vector<std::uint64_t>& costs_ns, std::uint64_t still_ns = 0) {
    Stream(handle).progress_ns = kNow - still_ns;
    for (const std::uint64_t ns : costs_ns)
      admission.Admit(&Stream(handle), kWindow, ns);
  }
  bool HasRoom(std::uintptr_t handle, const Window& window, std::uint64_t cost_ns) {
    return admission.HasRoom(window, cost_ns) || admission.HasRoomBeside(window, Stream(handle), cost_ns, kNow);
  }
};

}  // namespace

TEST_CASE("a launch has room beside what of other streams counts", "[admission]") {
  struct Load {
    std::uintptr_t stream;
    std::vector<std::uint64_t> costs_ns;
    std::uint64_t still_ns = 0;
  };
  struct Case {
    const char* name;
    std::vector<Load> loads;
    Window window;
    bool has_room;
    std::uint64_t cost_ns;
  };
  constexpr std::uint64_t kStill = kStreamStillNs + 1'000'001;
  const Case cases[] = {
      {"nothing in flight, however long it is", {}, kGuarded, true, 50'000'000},
      {"it fits", {{1, {400'000}}}, kGuarded, true, 100'000},
      {"it does not", {{1, {400'000}}}, kGuarded, false, 100'001},
      {"without a window", {{1, {400'000'000}}}, Window{}, true, 0},
      {"unknown, at the floor", {{1, {400'000}}}, Window{500, 2, true}, true, 0},
      {"unknown, above it", {{1, {400'000}}}, kGuarded, false, 0},
      {"the other stream with most does not count", {{2, {500'000}}}, kGuarded, true, 100'000},
      {"one of two others does", {{2, {500'000}}, {3, {450'000}}}, kGuarded, false, 100'000},
      {"that with less of two", {{2, {500'000}}, {3, {300'000}}}, kGuarded, true, 200'000},
      {"those that stand still do not",
       {{2, {500'000}, kStill}, {3, {500'000}, kStill}, {4, {500'000}, kStill}},
       kGuarded,
       true,
       100'000},
      {"those that have moved do",
       {{2, {500'000}, kStill - 1}, {3, {500'000}, kStill - 1}, {4, {500'000}}},
       kGuarded,
       false,
       100'000},
      {"its own stream counts, though it stands still", {{1, {500'000}, kStill}}, kGuarded, false, 100'000},
      {"one long launch on each of others does not", {{2, {2'000'000}}, {3, {2'000'000}}}, kWindow, true, 100'000},
      {"two on one do",
       {{2, {2'000'000}}, {3, {1'000'000, 1'000'000}}, {4, {1'000'000, 1'000'000}}},
       kWindow,
       false,
       100'000},
      {"nor while somebody more important is busy", {{2, {2'000'000}}, {3, {2'000'000}}}, kGuarded, false, 100'000},
      {"a long one beside others", {{2, {400'000, 1}}, {3, {400'000, 1}}}, kWindow, true, 2'000'000},
      {"one not much longer than the window", {{2, {400'000, 1}}, {3, {400'000, 1}}}, kWindow, false, 1'999'999},
      {"a long one behind one of its own", {{1, {1}}, {2, {400'000, 1}}, {3, {400'000, 1}}}, kWindow, false, 2'000'000},
  };
  for (const Case& each : cases) {
    CAPTURE(std::string(each.name));
    Device device;
    for (const Load& load : each.loads)
      device.Fill(load.stream, load.costs_ns, load.still_ns);
    CHECK(device.HasRoom(1, each.window, each.cost_ns) == each.has_room);
  }
}

TEST_CASE("what is admitted is in flight until it is removed, on its stream and in all", "[admission]") {
  Device device;
  TrackedStream &one = device.Stream(1), &other = device.Stream(2);
  CHECK(device.admission.Admit(&one, kWindow, 70'000) == 70'000);
  CHECK(device.admission.Admit(&other, kWindow, 0) == 500'000);  // unknown: the window at its floor
  CHECK(one.in_flight.launches == 1);
  CHECK(one.admitted == 1);
  CHECK(other.in_flight.cost_ns == 500'000);
  CHECK(device.admission.InFlightNs() == 570'000);
  Admission::Leave(&one);
  CHECK(one.admitted == 0);
  Admission::Leave(&one);  // of a stream that was destroyed meanwhile
  CHECK(one.admitted == 0);
  CHECK(one.in_flight.launches == 1);
  device.admission.Reweigh(&other, 500'000, 20'000);
  CHECK(other.in_flight.cost_ns == 20'000);
  CHECK(other.in_flight.launches == 1);
  CHECK(device.admission.InFlightNs() == 90'000);
  device.admission.Remove(&one, InFlight{1, 70'000});
  CHECK(one.in_flight.launches == 0);
  CHECK(device.admission.InFlightNs() == 20'000);
  device.admission.Clear();
  CHECK(device.admission.InFlightNs() == 0);
}

TEST_CASE("a host is ahead until a launch finds less than half a window in flight", "[admission]") {
  Device device;
  CHECK_FALSE(device.admission.EndHostAhead(kWindow));  // it never was
  device.Fill(1, {250'000});
  device.admission.NoteHostAhead();
  CHECK_FALSE(device.admission.EndHostAhead(kWindow));
  CHECK(device.admission.IsHostAhead());
  device.admission.Remove(&device.Stream(1), InFlight{0, 1});
  CHECK(device.admission.EndHostAhead(kWindow));
  CHECK_FALSE(device.admission.IsHostAhead());
  CHECK_FALSE(device.admission.EndHostAhead(kWindow));  // said once
  device.admission.NoteHostAhead();
  device.admission.ForgetHostAhead();
  CHECK_FALSE(device.admission.IsHostAhead());
  device.admission.NoteHostAhead();
  device.admission.Clear();
  CHECK_FALSE(device.admission.IsHostAhead());
}

TEST_CASE("another window is one of another length or floor", "[admission]") {
  Device device;
  CHECK(device.admission.SetWindow(kWindow));
  CHECK_FALSE(device.admission.SetWindow(kWindow));
  CHECK_FALSE(device.admission.SetWindow(kGuarded));
  CHECK(device.admission.SetWindow(Window{500, 2}));
  CHECK(device.admission.SetWindow(Window{400, 2}));
  CHECK(device.admission.LastWindow() == Window{400, 2});
}

TEST_CASE("who waits for room asks again when all is forgotten", "[admission]") {
  Device device;
  const std::uint32_t seen = device.admission.Waiters().Generation();
  device.Fill(1, {1});
  CHECK(device.admission.Waiters().Generation() == seen);
  device.admission.Clear();
  CHECK(device.admission.Waiters().Generation() != seen);
}
