// A launch's way through the client, from the program's call of its wrapper to its return:
//
//   asked     is it ours to count? A launch of a program that holds its own work, or to a stream below others of its
//             own, waits here, and counts as nothing yet
//   waited    at the gate, while the client is held; a client that waits is busy
//   admitted  in flight, once there is room in the window; with the tracker's lock taken once if there was nothing to
//             wait for
//   called    by the stub, between SubmitBegin and SubmitEnd
//   counted   or taken back if it failed, with the lock taken once more
//
// SubmitBegin and SubmitEnd are all of it, from top to bottom; below are the rooms that most launches pass by. What the
// way holds ends with the TrackedLaunch, also where it is left by an exception.
//
// Thread rule: any thread; a launch begins and ends on one.
#include "client-shim/core/tracked_launch.h"

#include <algorithm>
#include <utility>

#include "client-shim/core/carried.h"
#include "client-shim/core/client.h"
#include "client-shim/core/stream_order.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// The longest wait for the window without the window moving, if measured launches are longer than the lease.
constexpr std::uint64_t kLongestWindowWaitNs = 2'000'000'000;

// How often launches that are not counted ask whether the launch path may go its own way again.
constexpr std::uint64_t kAskTrackersNs = 10'000'000;

// What is launched, whatever its grid. 0: no single kernel.
LaunchKey FunctionOf(const Submission& submission) {
  return submission.kernel.kind == KernelKind::kNone ? 0 : reinterpret_cast<std::uintptr_t>(submission.kernel.handle);
}

}  // namespace

void Client::SubmitBegin(Submission* submission) {
  auto& place = Carried<TrackedLaunch>::Begin(submission->core);  // nothing, as long as it is not counted
  submission->stop = nullptr;

  // ---- asked
  if (requests_.HoldsAny()) [[unlikely]]
    WaitWhileOwnHeld(*submission);
  // Then everything is counted, without a daemon as well.
  const bool orders_streams = stream_gate_.IsOn();
  if (orders_streams) [[unlikely]]
    WaitForStreams(*submission);
  SessionUse use(session_);
  Session* const session = use.Get();
  if (session == nullptr && !orders_streams) return LookForMarkersNowAndThen();
  // Nothing runs when a capturing stream is given work; the launch of the graph is what counts.
  if (captures_.Any() && stub_.vendor->is_capturing(submission->stream)) return;
  const int device = DeviceOf(submission->stream);
  if (!IsDevice(device)) return;
  Attach(device);
  const auto slot = static_cast<std::uint32_t>(device);
  const std::uint32_t word = GateWord(session, slot);
  const std::uint64_t now = MonotonicNs();
  if (!orders_streams && !IsCounted(*session, word, now)) return LookForMarkersNowAndThen();
  TrackedLaunch& launch = place.Put(std::move(use), trackers_.Of(device), KeyOf(submission->stream), submission->key,
                                    FunctionOf(*submission));

  // ---- waited, admitted
  // Nothing is configured to pass, and nobody is held: the gate is as it was a moment ago, when it was asked.
  const bool is_turn = !passthrough_.Any() && (word & abi::kHeld) == 0;
  const Window window =
      orders_streams ? WindowFor(session, slot, word, submission->stream) : WindowOf(*session, slot, word);
  if (!is_turn || !launch.on_device.Begin(window, submission->may_time, now)) [[unlikely]] {
    const bool passes = !is_turn && EnterAndWaitForTurn(*submission, slot, now, &launch);
    WaitForRoomAndStart(*submission, slot, passes, &launch);
  }

  // ---- called
  // After it was counted: see LookForMarkers.
  if (!meets_markers_.load(std::memory_order_relaxed)) [[unlikely]]
    MayMeetMarkers();
  submission->stop = launch.on_device.StopMarker();
  if (submission->drains || submission->reads) [[unlikely]]
    launch.on_device.BeginWait(submission->drains);
}

void Client::SubmitEnd(Submission* submission, bool ok) {
  const auto launch = Carried<TrackedLaunch>::End(submission->core);
  if (launch == nullptr) return;

  // ---- counted
  launch->on_device.Leave(ok, submission->drains);
  agent_.WorkSubmitted();
}

// ---- asked ---------------------------------------------------------------------------------------------------------

// A launch that is not counted came here for what others, or the program, had submitted before.
void Client::LookForMarkersNowAndThen() {
  if (!meets_markers_.load(std::memory_order_relaxed)) return;
  const std::uint64_t now = MonotonicNs();
  if (now - asked_trackers_ns_.load(std::memory_order_relaxed) < kAskTrackersNs) return;
  asked_trackers_ns_.store(now, std::memory_order_relaxed);
  LookForMarkers(now);
}

// For what its own program holds or orders.
bool Client::NeverWaits(const Submission& submission) {
  return (captures_.Any() && stub_.vendor->is_capturing(submission.stream)) ||
         passthrough_.Match(submission, *stub_.vendor) != nullptr;
}

// Before the client is busy: what the program holds itself holds nobody else back.
void Client::WaitWhileOwnHeld(const Submission& submission) {
  if (NeverWaits(submission)) return;
  requests_.WaitWhileHeld(DeviceOf(submission.stream), submission.stream);
}

// ---- waited --------------------------------------------------------------------------------------------------------

// What passes is GPU time like any other, and makes the client busy; it only waits for nothing, and is launched as the
// program launches it. Whether it does.
bool Client::EnterAndWaitForTurn(const Submission& submission, std::uint32_t slot, std::uint64_t now_ns,
                                 TrackedLaunch* launch) {
  launch->on_device.Enter(now_ns);
  return WaitForTurn(launch->use.Get(), slot, submission);
}

// Waits at the gate, unless configuration lets the call pass: then it is counted, and the answer is true.
bool Client::WaitForTurn(Session* session, std::uint32_t slot, const Submission& submission) {
  for (;;) {
    const std::uint32_t epoch = passthrough_.Epoch();
    if (abi::Counter* const passed = passthrough_.Match(submission, *stub_.vendor)) {
      // relaxed: statistics.
      passed->fetch_add(1, std::memory_order_relaxed);
      if (session != nullptr) session->Ledger().Device(slot).passthrough.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    if (session == nullptr) return false;
    if (WaitAtGate(session, slot, passthrough_.EpochWord(), epoch)) return false;
  }
}

// ---- admitted ------------------------------------------------------------------------------------------------------

// What passes finds room in any case.
void Client::WaitForRoomAndStart(const Submission& submission, std::uint32_t slot, bool passes, TrackedLaunch* launch) {
  Session* const session = launch->use.Get();
  const Window window = WindowFor(session, slot, GateWord(session, slot), submission.stream);
  if (!launch->on_device.Admit(window, passes)) WaitForRoom(submission, slot, launch);
  launch->on_device.Start(submission.may_time && !passes);
}

// For what was not admitted.
void Client::WaitForRoom(const Submission& submission, std::uint32_t slot, TrackedLaunch* launch) {
  Session* const session = launch->use.Get();
  DeviceTracker* const tracker = launch->on_device.Tracker();
  // Work in flight may itself be waiting for what this thread is about to submit (a stream that waits for a value, a
  // kernel that waits for the host). So the wait is bounded: by the lease, or by what launches are known to take; and
  // there is none where no marker can be had.
  const auto patience_from = [&](std::uint64_t now) {
    const bool is_gated = (GateWord(session, slot) & abi::kFlagMask) != 0;
    return std::max(is_gated ? session->LeaseUntilNs() : now + kStreamStillNs,
                    now + std::min(2 * tracker->InFlightNs(), kLongestWindowWaitNs));
  };
  std::uint64_t patience = patience_from(MonotonicNs());
  std::uint32_t seen = GateWord(session, slot);
  tracker->NoteHostAhead();
  for (;;) {
    launch->on_device.AwaitRoom();
    const std::uint32_t word = GateWord(session, slot);
    const std::uint64_t now = MonotonicNs();
    const bool is_gated = (word & abi::kFlagMask) != 0 && session->IsAlive();
    const bool is_bound = (is_gated || stream_gate_.IsOn()) && now < patience && !tracker->LacksMarkers();
    const bool is_held = is_gated && is_bound && (word & abi::kHeld) != 0;
    if (std::exchange(seen, word) != word) tracker->WakeWaiting();
    const bool passes = is_held && WaitForTurn(session, slot, submission);
    if (is_held) patience = patience_from(MonotonicNs());  // that was the gate's time, not the window's
    const Window window = WindowFor(session, slot, word, submission.stream);
    if (launch->on_device.Admit(window, passes || !is_bound)) break;
  }
  tracker->WakeWaiting();
}

}  // namespace xschedd::shim
