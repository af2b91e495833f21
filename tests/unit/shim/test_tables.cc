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

TEST_CASE("captures: one begins after a record in progress", "[captures]") {
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

TEST_CASE("captures: a record that does not return does not block a capture for ever", "[captures]") {
  Captures captures;
  const Captures::Elsewhere record(&captures);
  captures.Begin(Handle(16));
  CHECK(captures.Any());
}

TEST_CASE("captures: a process that exits no longer calls the runtime", "[captures]") {
  Captures captures;
  CHECK_FALSE(captures.AreCallsForbidden());
  captures.ForbidCalls();
  CHECK(captures.AreCallsForbidden());
}

TEST_CASE("stream table: a stream is found from its addition to its removal", "[streams]") {
  StreamTable table;
  CHECK_FALSE(table.DeviceOf(Handle(16)));
  table.Add(Handle(16), StreamInfo{0, -1, 1, true});
  table.Add(Handle(32), StreamInfo{1, 0, 0, true});
  table.Add(Handle(48), StreamInfo{1, 0, 0, false});
  CHECK(table.KnownDeviceOf(Handle(16)) == -1);
  CHECK(table.DeviceOf(Handle(16)) == 0);
  CHECK(table.KnownDeviceOf(Handle(16)) == 0);  // as recorded
  CHECK(table.DeviceOf(Handle(32)) == 1);
  CHECK(table.DeviceOf(Handle(48)) == 1);
  table.Add(Handle(16), StreamInfo{3, 0, 0, true});  // a reused handle
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
  const auto distant = Handle(std::uintptr_t{1} << 60 | 16);  // too distant to be recorded
  table.Add(distant, StreamInfo{5, 0, 0, true});
  CHECK(table.DeviceOf(distant) == 5);
  CHECK(table.KnownDeviceOf(distant) == -1);
  CHECK_FALSE(table.DeviceOf(Handle(16)));
}
