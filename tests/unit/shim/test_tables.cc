// The small tables: captures in progress, streams.
#include "client-shim/core/captures.h"
#include "client-shim/core/stream_table.h"
#include "tests/catch.h"

using namespace xschedd::shim;

namespace {
void* Handle(std::uintptr_t value) {
  return reinterpret_cast<void*>(value);
}
}  // namespace

TEST_CASE("captures: relaxed ones forbid nothing, others do until they end", "[captures]") {
  Captures captures;
  CHECK_FALSE(captures.Any());
  captures.Begin(Handle(16), Captures::kRelaxed);
  CHECK(captures.Any());
  CHECK_FALSE(captures.Forbid());
  captures.Begin(Handle(32), 0);
  captures.Begin(Handle(48), 1);
  captures.End(Handle(32));
  CHECK(captures.Forbid());
  captures.End(Handle(48));
  CHECK_FALSE(captures.Forbid());
  CHECK(captures.Any());
  captures.End(Handle(99));  // never begun: no effect
  captures.End(Handle(16));
  CHECK_FALSE(captures.Any());
}

TEST_CASE("stream table: what was added is found until it is removed", "[streams]") {
  StreamTable table;
  CHECK_FALSE(table.Find(Handle(16)));
  table.Add(Handle(16), StreamInfo{0, -1, 1, true});
  table.Add(Handle(32), StreamInfo{1, 0, 0, true});
  table.Add(Handle(48), StreamInfo{1, 0, 0, false});
  REQUIRE(table.Find(Handle(16)));
  CHECK(table.Find(Handle(16))->priority == -1);
  table.Add(Handle(16), StreamInfo{3, 0, 0, true});  // a handle used again
  CHECK(table.Find(Handle(16))->device == 3);
  CHECK(table.RemoveDevice(1).size() == 2);
  CHECK(table.All().size() == 1);
  CHECK(table.Remove(Handle(16)));
  CHECK_FALSE(table.Remove(Handle(16)));
}
