// Asks the markers of settled work for their times, in the order in which it settled, and passes these to DeviceTimes.
// One thread at a time measures, for all.
//
//     Push ──► waiting ──(UnlockToMeasure: the runtime is asked)──► DeviceTimes, end of the stream
//                                                             └──► markers back to the pool
//
// Thread rule: guarded by its device's lock, which UnlockToMeasure releases for calls of the runtime. These do not
// block: the markers are done.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "client-shim/core/captures.h"
#include "client-shim/core/device_times.h"
#include "client-shim/core/marker_clock.h"
#include "client-shim/core/marker_pool.h"
#include "client-shim/core/ring_queue.h"
#include "client-shim/core/tracked_streams.h"

namespace xschedd::shim {

class Measuring {
 public:
  // The arguments outlive it. Once the process exits, the runtime is no longer asked: work that settles then is counted
  // with its known cost.
  Measuring(const Vendor* vendor, const Captures* captures, MarkerPool* markers, TrackedStreams* streams,
            DeviceTimes* times)
      : vendor_(vendor), captures_(captures), markers_(markers), streams_(streams), times_(times), clock_(vendor) {}

  void Push(const StreamKey& stream, const SettledWork& done) { waiting_.Push(Measurement{stream, done}); }
  // Measures all that waits. Nothing to do while another thread does it: that one takes what was pushed since.
  void UnlockToMeasure(std::unique_lock<std::mutex>& lock);
  bool IsUnderWay() const { return is_under_way_; }

  // What waits counts for nothing, nor does what is being asked; its markers are free.
  void Drop();
  // The device and its markers are about to go. Nobody measures.
  void ForgetMarkers();

 private:
  struct Measurement {
    StreamKey stream;
    SettledWork done;
  };
  struct Times {
    std::optional<std::uint64_t> from, to;
    void* unused;  // the marker that is free now
  };

  Times Ask(const SettledWork& done);
  void Account(const Measurement& measurement, std::optional<std::uint64_t> from, std::optional<std::uint64_t> to);

  const Vendor* const vendor_;
  const Captures* const captures_;
  MarkerPool* const markers_;
  TrackedStreams* const streams_;
  DeviceTimes* const times_;
  RingQueue<Measurement> waiting_;
  MarkerClock clock_;  // the measuring thread's
  std::uint64_t drops_ = 0;
  bool is_under_way_ = false;
};

}  // namespace xschedd::shim
