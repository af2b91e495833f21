// Reads the times of settled work from its markers, in the order in which it settled, and passes them to DeviceTimes.
// One thread at a time measures, for all.
//
//     Push ──► waiting ──(UnlockToMeasure: calls the runtime)──► DeviceTimes, the stream's end_ns
//                                                           └──► markers back to the pool
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
  // The arguments outlive this object. Once the process exits, the runtime is not called: work that settles then is
  // counted with its known cost.
  Measuring(const Vendor* vendor, const Captures* captures, MarkerPool* markers, TrackedStreams* streams,
            DeviceTimes* times)
      : vendor_(vendor), captures_(captures), markers_(markers), streams_(streams), times_(times), clock_(vendor) {}

  void Push(const StreamKey& stream, const SettledWork& done) { waiting_.Push(Measurement{stream, done}); }
  // Measures all that waits. Does nothing while another thread measures: that thread also takes what is pushed
  // meanwhile.
  void UnlockToMeasure(std::unique_lock<std::mutex>& lock);
  bool IsUnderWay() const { return is_under_way_; }

  // Drops all that waits or is being measured, and gives the markers back.
  void Drop();
  // The device is about to be reset, and the markers go with it. Only while nobody measures.
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
