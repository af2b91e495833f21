// Threads with default streams of their own: what the tracker keeps about them, and what remains when they end.
#include "tests/catch.h"
#include "tests/unit/shim/tracker_fixture.h"

using namespace xschedd::shim;

namespace {
StreamKey OfThread(std::uint64_t thread) {
  return StreamKey{reinterpret_cast<void*>(kPerThreadHandle), thread};
}
}  // namespace

TEST_CASE_METHOD(Fixture, "ten thousand threads that have ended leave nothing behind", "[tracker]") {
  for (std::uint64_t thread = 1; thread <= 10'000; ++thread) {
    REQUIRE(TryLaunch(OfThread(thread)));
    Sync(SyncScope::kStream, OfThread(thread));
    CHECK(tracker.Streams() == 1);
    tracker.ForgetThread(thread);
  }
  CHECK(tracker.Streams() == 0);
  CHECK_FALSE(tracker.IsBusy());
  CHECK(sink.completed == 10'000);
}

TEST_CASE_METHOD(Fixture, "what a thread leaves on the device is waited for", "[tracker]") {
  REQUIRE(TryLaunch(OfThread(7)));
  REQUIRE(TryLaunch(OfThread(8)));
  tracker.ForgetThread(7);
  CHECK(tracker.IsBusy());
  CHECK(tracker.Streams() == 2);
  vendor.Finish(reinterpret_cast<void*>(kPerThreadHandle), 1'000'000);
  tracker.Poll();
  CHECK_FALSE(tracker.IsBusy());
  CHECK(tracker.Streams() == 1);  // of the thread that lives
  CHECK(sink.completed == 2);
}

TEST_CASE_METHOD(Fixture, "what a thread leaves without a marker is over with the thread", "[tracker]") {
  vendor.refuses_to_record = true;
  REQUIRE(TryLaunch(OfThread(7)));
  CHECK(tracker.IsBusy());
  tracker.ForgetThread(7);
  CHECK_FALSE(tracker.IsBusy());
  CHECK(tracker.Streams() == 0);
  CHECK(sink.completed == 1);
}

TEST_CASE_METHOD(Fixture, "a synchronisation of the device is enough for threads that have ended", "[tracker]") {
  REQUIRE(TryLaunch(OfThread(7)));
  tracker.ForgetThread(7);
  Sync(SyncScope::kDevice, StreamKey{});
  CHECK_FALSE(tracker.IsBusy());
  CHECK(tracker.Streams() == 0);
  tracker.ForgetThread(9);  // one that is not known
}
