#include "client-shim/core/admission.h"

#include "client-shim/core/stream_order.h"

namespace xschedd::shim {

bool Admission::HasRoomBeside(const Window& window, const TrackedStream& stream, std::uint64_t cost_ns,
                              std::uint64_t now_ns) const {
  return MayRunSideBySide(window, stream.in_flight, cost_ns) ||
         shim::HasRoom(window, CountedFor(stream, window, now_ns), cost_ns);
}

// What counts against the window for a launch on `stream`. The other stream with the most in flight does not count: it
// may wait for a peer of this process (a collective) or for this very stream. Nor do streams that make no progress
// (several communicators may wait for their peers at once), nor those with one launch that may run side by side. So a
// client has at most two windows in flight on streams that make progress.
InFlight Admission::CountedFor(const TrackedStream& stream, const Window& window, std::uint64_t now_ns) const {
  InFlight most;
  InFlight counted = in_flight_;
  for (const auto& [key, other] : *streams_) {
    if (&other == &stream) continue;
    const InFlight& its = other.in_flight;
    const bool is_still = its.launches > 0 && now_ns > other.progress_ns + kStreamStillNs + 2 * its.cost_ns;
    const bool is_long = its.launches == 1 && MayRunSideBySide(window, InFlight{}, its.cost_ns);
    if (is_still || is_long) {
      counted.Remove(its);
    } else if (its.cost_ns > most.cost_ns) {
      most = its;
    }
  }
  counted.Remove(most);
  return counted;
}

}  // namespace xschedd::shim
