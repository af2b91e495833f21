// Admits launches to a device: compares what is in flight there with the window (window.h), and keeps the threads that
// wait for room.
//
//   HasRoom ── yes ──────────────────────────► Admit ──► in flight ──► Remove
//      │ no                                      ▲
//   HasRoomBeside ── yes: only other streams ────┤
//      │ no                are in the way        │
//   the thread notes RoomWaiters' Generation() and tries again once it has changed
//
// When a launch finds no room, the host is far ahead of the device (NoteHostAhead). This state lasts until a launch
// finds less than half a window in flight. If it ended with each wait, every launch of a program that is bound by the
// device would begin and end it.
//
// Has no clock and calls no runtime. Thread rule: guarded by its device's lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "client-shim/core/room_waiters.h"
#include "client-shim/core/tracked_streams.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

class Admission {
 public:
  // `streams` outlives this object, which maintains their `in_flight` and `admitted`.
  explicit Admission(const TrackedStreams* streams) : streams_(streams) {}

  // ---- whether the window has room for a launch of `cost_ns` (0: unknown)
  // Counts all that is in flight and promised. False: there may be room once promises are taken back.
  bool HasRoomBesidePromises(const Window& window, std::uint64_t cost_ns) const {
    return window.us == 0 ||
           (cost_ns != 0 && in_flight_.cost_ns + promised_ns_ + cost_ns <= std::uint64_t{window.us} * 1000);
  }
  // Counts all that is in flight. Only while nothing is promised.
  bool HasRoom(const Window& window, std::uint64_t cost_ns) const { return shim::HasRoom(window, in_flight_, cost_ns); }
  // For a launch on `stream`: counts of other streams only what must count. Visits each stream.
  bool HasRoomBeside(const Window& window, const TrackedStream& stream, std::uint64_t cost_ns,
                     std::uint64_t now_ns) const;

  // ---- what is in flight
  // Counts a launch as in flight. Returns its weight, ns.
  std::uint64_t Admit(TrackedStream* stream, const Window& window, std::uint64_t cost_ns) {
    const std::uint64_t weight_ns = WeightNs(window, cost_ns);
    Add(stream, InFlight{1, weight_ns});
    ++stream->admitted;
    return weight_ns;
  }
  // The call of an admitted launch has returned. What it launched stays in flight.
  static void Leave(TrackedStream* stream, std::uint32_t launches = 1) {
    // Fewer, if the stream was destroyed meanwhile and this is a new one of the same handle.
    stream->admitted -= std::min(stream->admitted, launches);
  }
  void Remove(TrackedStream* stream, const InFlight& part) {
    in_flight_.Remove(part);
    stream->in_flight.Remove(part);
  }
  // What stream accounts may admit by themselves (stream_accounts.h), until they are folded or lose their grant.
  std::uint64_t PromisedNs() const { return promised_ns_; }
  void Promise(std::uint64_t room_ns) { promised_ns_ += room_ns; }
  void EndPromise(std::uint64_t room_ns) { promised_ns_ -= std::min(promised_ns_, room_ns); }
  // Adds launches that an account has admitted.
  void Fold(TrackedStream* stream, const InFlight& begun) {
    Add(stream, begun);
    stream->admitted += begun.launches;
    stream->admissions += begun.launches;
  }
  // The weight of a part of what is in flight on the stream has changed.
  void Reweigh(TrackedStream* stream, std::uint64_t before_ns, std::uint64_t now_ns) {
    Add(stream, InFlight{0, now_ns});
    Remove(stream, InFlight{0, before_ns});
  }
  std::uint64_t InFlightNs() const { return in_flight_.cost_ns; }
  // Nothing is in flight any more: the streams, or their work, are forgotten. Waiting threads try again.
  void Clear() {
    in_flight_ = InFlight{};
    is_host_ahead_ = false;
    waiters_.NotifyRoom();
  }

  // ---- the host ahead of the device
  void NoteHostAhead() { is_host_ahead_ = true; }
  bool IsHostAhead() const { return is_host_ahead_; }
  // Called before Admit. True: the host was ahead until now, and no longer is.
  bool EndHostAhead(const Window& window) {
    if (!is_host_ahead_ || in_flight_.cost_ns >= std::uint64_t{window.us} * 1000 / 2) [[likely]]
      return false;
    is_host_ahead_ = false;
    return true;
  }
  // All work has finished.
  void ForgetHostAhead() { is_host_ahead_ = false; }

  // ---- the window of the last launch, for display and for accounts
  // Returns whether its size changed; `is_guarded` does not count.
  bool SetWindow(const Window& window) {
    const bool has_changed = window_.us != window.us || window_.floor != window.floor;
    window_ = window;
    return has_changed;
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
