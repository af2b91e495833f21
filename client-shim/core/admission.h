// Whether a launch may start on a device now: what is in flight there, compared with the window (window.h), and the
// threads that wait for room in it.
//
//   HasRoom ── yes ──────────────────────────► Admit ──► in flight ──► Remove
//      │ no                                      ▲
//   HasRoomBeside ── yes: only other streams ────┤
//      │ no                are in the way        │
//   Rooms() is noted; tried again once it has changed (RoomWaiters)
//
// A launch that finds no room means that the host is far ahead of the device (NoteHostAhead). This lasts until a launch
// finds less than half a window in flight, not only while a launch waits: otherwise each launch of a program that is
// bound by the device would begin and end it.
//
// Pure but for RoomWaiters: no clock, no runtime. Thread rule: guarded by its device's lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "client-shim/core/room_waiters.h"
#include "client-shim/core/tracked_streams.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

class Admission {
 public:
  // `streams` outlives it; it keeps their `in_flight` and `admitted`.
  explicit Admission(const TrackedStreams* streams) : streams_(streams) {}

  // ---- may a launch of `cost_ns` (0: unknown) join
  // Counting all that is in flight, and what is promised. False: without what is promised there may be some.
  bool HasRoomBesidePromises(const Window& window, std::uint64_t cost_ns) const {
    return window.us == 0 ||
           (cost_ns != 0 && in_flight_.cost_ns + promised_ns_ + cost_ns <= std::uint64_t{window.us} * 1000);
  }
  // Counting all that is in flight. Nothing is promised.
  bool HasRoom(const Window& window, std::uint64_t cost_ns) const { return shim::HasRoom(window, in_flight_, cost_ns); }
  // On `stream`, counting only what must be counted of other streams. Looks at each stream.
  bool HasRoomBeside(const Window& window, const TrackedStream& stream, std::uint64_t cost_ns,
                     std::uint64_t now_ns) const;

  // ---- what is in flight
  // Counts a launch in. Returns what it counts, ns.
  std::uint64_t Admit(TrackedStream* stream, const Window& window, std::uint64_t cost_ns) {
    const std::uint64_t weight_ns = WeightNs(window, cost_ns);
    Add(stream, InFlight{1, weight_ns});
    ++stream->admitted;
    return weight_ns;
  }
  // The call of an admitted launch has returned. What it launched stays in flight.
  static void Leave(TrackedStream* stream, std::uint32_t launches = 1) {
    stream->admitted -=
        std::min(stream->admitted, launches);  // 0: the stream was destroyed meanwhile, and this state is a new one
  }
  void Remove(TrackedStream* stream, const InFlight& part) {
    in_flight_.Remove(part);
    stream->in_flight.Remove(part);
  }
  // What a stream's account may admit by itself (stream_accounts.h), until it is folded or the grant is taken back.
  std::uint64_t PromisedNs() const { return promised_ns_; }
  void Promise(std::uint64_t room_ns) { promised_ns_ += room_ns; }
  void EndPromise(std::uint64_t room_ns) { promised_ns_ -= std::min(promised_ns_, room_ns); }
  // Launches that an account has admitted.
  void Fold(TrackedStream* stream, const InFlight& begun) {
    Add(stream, begun);
    stream->admitted += begun.launches;
    stream->turn += begun.launches;
  }
  // A part of what is in flight on the stream counts another amount now.
  void Reweigh(TrackedStream* stream, std::uint64_t before_ns, std::uint64_t now_ns) {
    Add(stream, InFlight{0, now_ns});
    Remove(stream, InFlight{0, before_ns});
  }
  std::uint64_t InFlightNs() const { return in_flight_.cost_ns; }
  // Nothing is in flight, on any stream: they are forgotten, or their work is. Waiting threads try again.
  void Clear() {
    in_flight_ = InFlight{};
    is_host_ahead_ = false;
    waiters_.MoreRoom();
  }

  // ---- the host ahead of the device
  void NoteHostAhead() { is_host_ahead_ = true; }
  bool IsHostAhead() const { return is_host_ahead_; }
  // Before a launch is counted in. True: the host is no longer ahead, and was until now.
  bool EndHostAhead(const Window& window) {
    if (!is_host_ahead_ || in_flight_.cost_ns >= std::uint64_t{window.us} * 1000 / 2) [[likely]]
      return false;
    is_host_ahead_ = false;
    return true;
  }
  // All is done.
  void ForgetHostAhead() { is_host_ahead_ = false; }

  // ---- the window that was asked for last, for display
  // Whether it is another one, but for the guard.
  bool SetWindow(const Window& window) {
    const bool is_another = window_.us != window.us || window_.floor != window.floor;
    window_ = window;
    return is_another;
  }
  const Window& LastWindow() const { return window_; }

  RoomWaiters& Waiters() { return waiters_; }

 private:
  void Add(TrackedStream* stream, const InFlight& part) {
    in_flight_.Add(part);
    stream->in_flight.Add(part);
  }
  InFlight CountedFor(const TrackedStream& stream, const Window& window, std::uint64_t now_ns) const;

  const TrackedStreams* const streams_;
  InFlight in_flight_;  // of all streams
  std::uint64_t promised_ns_ = 0;
  Window window_;
  RoomWaiters waiters_;
  bool is_host_ahead_ = false;
};

}  // namespace xschedd::shim
