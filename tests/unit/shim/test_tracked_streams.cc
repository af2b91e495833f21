// The streams of a device: which is which, which is forgotten when, and what the legacy default stream waits for.
#include <string>
#include <vector>

#include "client-shim/core/tracked_streams.h"
#include "tests/catch.h"

using namespace xschedd::shim;

namespace {

void* HandleOf(std::uintptr_t handle) {
  return reinterpret_cast<void*>(handle);
}
StreamKey Key(std::uintptr_t handle, std::uint64_t thread = 0) {
  return StreamKey{HandleOf(handle), thread};
}

}  // namespace

TEST_CASE("a stream is found again, however many there are", "[streams]") {
  TrackedStreams streams;
  CHECK(streams.Known(Key(16)) == nullptr);
  std::vector<TrackedStream*> found;
  for (std::uintptr_t handle = 16; handle < 16'000; handle += 16)
    found.push_back(&streams.Find(Key(handle)));
  CHECK(streams.Size() == found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(&streams.Find(Key(16 + 16 * i)) == found[i]);
    CHECK(streams.Known(Key(16 + 16 * i)) == found[i]);
    CHECK(found[i]->activity.stream == Key(16 + 16 * i));
  }
  CHECK(&streams.Find(Key(2, 7)) != &streams.Find(Key(2, 8)));
}

TEST_CASE("what is forgotten is another stream when it is found again", "[streams]") {
  TrackedStreams streams;
  streams.Find(Key(16)).admissions = 7;
  streams.Find(Key(32)).admissions = 8;
  std::uint32_t forgets = streams.Forgets();
  streams.Forget(Key(16));
  CHECK(streams.Forgets() != forgets);
  CHECK(streams.Known(Key(16)) == nullptr);
  CHECK(streams.Find(Key(16)).admissions == 0);
  CHECK(streams.Find(Key(32)).admissions == 8);
  forgets = streams.Forgets();
  streams.ForgetAll();
  CHECK(streams.Forgets() != forgets);
  CHECK(streams.Size() == 0);
  CHECK(streams.Find(Key(32)).admissions == 0);
}

TEST_CASE("the stream of a thread that has ended is forgotten once it is idle and nobody records on it", "[streams]") {
  TrackedStreams streams;
  streams.Find(Key(2, 8));
  TrackedStream& stream = streams.Find(Key(2, 7));
  stream.work.Launched(1, 1000);
  stream.pins = 1;
  streams.NoteGone(&stream);
  streams.ForgetGone();
  CHECK(streams.Size() == 2);
  stream.work.Close(1);
  (void)stream.work.Settle(
      1, [](const SettledWork&) {}, [](const InFlight&, const LaunchMix&, TimedFrom) {});
  streams.ForgetGone();
  CHECK(streams.IsAnyPinned());
  CHECK(streams.Size() == 2);
  stream.pins = 0;
  streams.ForgetGone();
  CHECK_FALSE(streams.IsAnyPinned());
  CHECK(streams.Size() == 1);
  const std::uint32_t forgets = streams.Forgets();
  streams.ForgetGone();  // nothing is left to forget, and whoever has a stream need not look again
  CHECK(streams.Forgets() == forgets);
}

TEST_CASE("rounds go on behind a stream that is gone", "[streams]") {
  TrackedStreams streams;
  for (const std::uintptr_t handle : {16, 32, 48})
    streams.Find(Key(handle));
  CHECK(streams.After({})->first == Key(16));
  streams.Forget(Key(32));
  CHECK(streams.After(Key(32))->first == Key(48));
  CHECK(streams.After(Key(48)) == streams.end());
}

TEST_CASE("the legacy default stream waits for blocking streams, and may not be marked beside them", "[streams]") {
  TrackedStreams streams;
  streams.NoteMade(HandleOf(32), true);
  TrackedStream& is_non_blocking = streams.Find(Key(32));
  CHECK(is_non_blocking.is_non_blocking);
  CHECK_FALSE(TrackedStreams::IsWaitedFor(StreamKey{}, Key(32), is_non_blocking));
  CHECK(TrackedStreams::IsWaitedFor(Key(32), Key(32), is_non_blocking));
  CHECK(streams.MayMarkElsewhere(StreamKey{}));
  CHECK_FALSE(streams.MayMarkElsewhere(Key(2, 7)));
  // One that was not seen being made is taken for a blocking one.
  TrackedStream& blocking = streams.Find(Key(16));
  CHECK(TrackedStreams::IsWaitedFor(StreamKey{}, Key(16), blocking));
  CHECK_FALSE(TrackedStreams::IsWaitedFor(Key(32), Key(16), blocking));
  CHECK_FALSE(TrackedStreams::IsWaitedFor(StreamKey{}, Key(2, 7), streams.Find(Key(2, 7))));
  CHECK_FALSE(streams.MayMarkElsewhere(StreamKey{}));
  CHECK(streams.MayMarkElsewhere(Key(16)));
}

TEST_CASE("with its last blocking stream gone, the legacy default stream is one like any other", "[streams]") {
  TrackedStreams streams;
  streams.NoteMade(HandleOf(16), false);
  streams.NoteMade(HandleOf(32), false);
  streams.NoteDestroyed(HandleOf(16));
  CHECK_FALSE(streams.MayMarkElsewhere(StreamKey{}));
  streams.NoteDestroyed(HandleOf(32));
  CHECK(streams.MayMarkElsewhere(StreamKey{}));
  streams.NoteMade(HandleOf(48), false);
  streams.ForgetAll();  // the device was reset
  CHECK(streams.MayMarkElsewhere(StreamKey{}));
}

TEST_CASE("a new session knows nothing of a stream's work, and all of the stream", "[streams]") {
  TrackedStreams streams;
  streams.NoteMade(HandleOf(16), true);
  TrackedStream& stream = streams.Find(Key(16));
  stream.work.Launched(1, 1000);
  stream.in_flight = InFlight{1, 1000};
  stream.admitted = stream.pins = 1;
  stream.own_marker = TrackedStream::kRecording;
  stream.recorded_ns = stream.progress_ns = 5;
  stream.activity.launches = 1;
  stream.ForgetWork();
  CHECK(stream.work.IsIdle());
  CHECK(stream.in_flight.launches == 0);
  CHECK(stream.admitted == 0);
  CHECK(stream.activity.launches == 0);
  CHECK(stream.activity.stream == Key(16));
  CHECK(stream.is_non_blocking);
  CHECK(stream.pins == 1);
  CHECK(stream.own_marker == TrackedStream::kRecording);
  CHECK(stream.recorded_ns == 5);
  CHECK(stream.progress_ns == 5);
}
