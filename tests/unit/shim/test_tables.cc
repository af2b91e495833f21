// The small tables: captures in progress, streams.
#include <atomic>
#include <optional>
#include <thread>

#include "client-shim/core/captures.h"
#include "client-shim/core/stream_table.h"
#include "tests/catch.h"

using namespace xschedd::shim;

namespace {
void* Handle(std::uintptr_t value) {
  return reinterpret_cast<void*>(value);
}
}  // namespace

TEST_CASE("captures: while one is open nothing is recorded elsewhere", "[captures]") {
  Captures captures;
  CHECK_FALSE(captures.Any());
  CHECK(Captures::Elsewhere(&captures).IsAllowed());
  captures.Begin(Handle(16));
  captures.Begin(Handle(32));
  CHECK(captures.Any());
  CHECK_FALSE(Captures::Elsewhere(&captures).IsAllowed());
  captures.End(Handle(16));
  CHECK(captures.Any());
  captures.End(Handle(99));  // never begun: no effect
  captures.End(Handle(32));
  CHECK_FALSE(captures.Any());
  CHECK(Captures::Elsewhere(&captures).IsAllowed());
}

TEST_CASE("captures: one begins behind the record that is under way", "[captures]") {
  Captures captures;
  std::optional<Captures::Elsewhere> record(std::in_place, &captures);
  REQUIRE(record->IsAllowed());
  std::atomic<bool> is_recording{true};
  bool began_meanwhile = false;
  std::thread capturing([&] {
    captures.Begin(Handle(16));
    began_meanwhile = is_recording.load();
  });
  while (!captures.Any())
    std::this_thread::yield();
  is_recording.store(false);
  record.reset();
  capturing.join();
  CHECK_FALSE(began_meanwhile);
}

TEST_CASE("captures: a record that does not return keeps no capture from beginning", "[captures]") {
  Captures captures;
  const Captures::Elsewhere record(&captures);
  captures.Begin(Handle(16));
  CHECK(captures.Any());
}

TEST_CASE("captures: a process that exits calls the runtime no more", "[captures]") {
  Captures captures;
  CHECK_FALSE(captures.Forbid());
  captures.ForbidForGood();
  CHECK(captures.Forbid());
}

TEST_CASE("stream table: what was added is found until it is removed", "[streams]") {
  StreamTable table;
  CHECK_FALSE(table.DeviceOf(Handle(16)));
  table.Add(Handle(16), StreamInfo{0, -1, 1, true});
  table.Add(Handle(32), StreamInfo{1, 0, 0, true});
  table.Add(Handle(48), StreamInfo{1, 0, 0, false});
  CHECK(table.KnownDeviceOf(Handle(16)) == -1);
  CHECK(table.DeviceOf(Handle(16)) == 0);
  CHECK(table.KnownDeviceOf(Handle(16)) == 0);  // as it was remembered
  CHECK(table.DeviceOf(Handle(32)) == 1);
  CHECK(table.DeviceOf(Handle(48)) == 1);
  table.Add(Handle(16), StreamInfo{3, 0, 0, true});  // a handle used again
  CHECK(table.KnownDeviceOf(Handle(16)) == -1);
  CHECK(table.DeviceOf(Handle(16)) == 3);
  CHECK(table.RemoveDevice(1).size() == 2);
  CHECK_FALSE(table.DeviceOf(Handle(32)));
  CHECK(table.KnownDeviceOf(Handle(32)) == -1);
  CHECK(table.All().size() == 1);
  CHECK(table.DeviceOf(Handle(16)) == 3);
  CHECK(table.Remove(Handle(16)));
  CHECK_FALSE(table.Remove(Handle(16)));
  CHECK_FALSE(table.DeviceOf(Handle(16)));
  const auto far = Handle(std::uintptr_t{1} << 60 | 16);  // too far off to be remembered
  table.Add(far, StreamInfo{5, 0, 0, true});
  CHECK(table.DeviceOf(far) == 5);
  CHECK(table.KnownDeviceOf(far) == -1);
  CHECK_FALSE(table.DeviceOf(Handle(16)));
}
