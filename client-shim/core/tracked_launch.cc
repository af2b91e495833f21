// A launch's way through the client, from the program's call of its wrapper to its return:
//
//   asked     is it ours to count? A launch of a program that holds its own work, or to a stream below others of its
//             own, waits here, and counts as nothing yet
//   waited    at the gate while the client is held, then for room in the window; a client that waits is busy
//   admitted  counted in, with the tracker's lock taken once if there was nothing to wait for
//   called    by the stub, between SubmitBegin and SubmitEnd
//   counted   with the lock taken once more
//
// Thread rule: any thread; a launch begins and ends on one.
#include "client-shim/core/tracked_launch.h"

#include <algorithm>
#include <utility>

#include "client-shim/core/carried.h"
#include "client-shim/core/client.h"
#include "client-shim/core/device_launching.h"
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
  auto& launch = Make<TrackedLaunch>(submission->core);
  launch.tracker = nullptr;
  submission->stop = nullptr;

  // ---- asked
  if (own_holds_.Any()) [[unlikely]]
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
  launch.tracker = Tracker(device);
  launch.session = session;
  launch.ticket.stream = KeyOf(submission->stream);
  launch.ticket.key = submission->key;
  launch.ticket.function = FunctionOf(*submission);
  use.Keep();  // until SubmitEnd

  // ---- waited, admitted
  // Nothing is configured to pass, and nobody is held: the gate is as it was a moment ago, when it was asked.
  const bool is_turn = !passthrough_.Any() && (word & abi::kHeld) == 0;
  const Window window =
      orders_streams ? WindowFor(session, slot, word, submission->stream) : WindowOf(*session, slot, word);
  if (!is_turn || !launch.tracker->Begin(&launch.ticket, window, submission->may_time, now)) [[unlikely]] {
    Wait(*submission, slot, is_turn, &launch);
  }

  // ---- called
  // After it was counted: see LookForMarkers.
  if (!meets_markers_.load(std::memory_order_relaxed)) [[unlikely]]
    MayMeetMarkers();
  submission->stop = launch.ticket.stop;
  if (submission->drains || submission->reads) [[unlikely]]
    BeginWait(*submission, &launch);
}

void Client::SubmitEnd(Submission* submission, bool ok) {
  const auto& launch = Made<TrackedLaunch>(submission->core);
  if (launch.tracker == nullptr) return;

  // ---- counted
  launch.tracker->Leave(launch.ticket, ok, submission->drains);
  if (submission->drains || submission->reads) [[unlikely]]
    EndWait(*submission, launch, ok);
  if (launch.session != nullptr) SessionUse::End(launch.session);
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
  const int device = DeviceOf(submission.stream);
  if (own_holds_.Wait(device, ByOneName(submission.stream))) PointSummary();
}

// ---- waited --------------------------------------------------------------------------------------------------------

// `is_turn`: the launch has been entered already, and found no room.
void Client::Wait(const Submission& submission, std::uint32_t slot, bool is_turn, TrackedLaunch* launch) {
  Ticket* const ticket = &launch->ticket;
  // What passes is GPU time like any other, and makes the client busy; it only waits for nothing, and is launched as
  // the program launches it.
  bool passes = false;
  bool is_admitted = false;
  if (!is_turn) {
    *ticket = launch->tracker->Enter(ticket->stream, ticket->key, ticket->function);
    passes = WaitForTurn(launch->session, slot, submission);
    const std::uint32_t word = GateWord(launch->session, slot);
    is_admitted = launch->tracker->Admit(ticket, WindowFor(launch->session, slot, word, submission.stream), passes);
  }
  if (!is_admitted) WaitForRoom(submission, slot, launch);
  launch->tracker->Start(ticket, submission.may_time && !passes);
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

// For a ticket that was not admitted.
void Client::WaitForRoom(const Submission& submission, std::uint32_t slot, TrackedLaunch* launch) {
  Session* const session = launch->session;
  DeviceTracker* const tracker = launch->tracker;
  // Work in flight may itself be waiting for what this thread is about to submit (a stream that waits for a value, a
  // kernel that waits for the host). So the wait is bounded: by the lease, or by what launches are known to take.
  const auto patience_from = [&](std::uint64_t now) {
    const bool is_gated = (GateWord(session, slot) & abi::kFlagMask) != 0;
    return std::max(is_gated ? session->LeaseUntilNs() : now + kStreamStillNs,
                    now + std::min(2 * tracker->InFlightNs(), kLongestWindowWaitNs));
  };
  std::uint64_t patience = patience_from(MonotonicNs());
  std::uint32_t seen = GateWord(session, slot);
  tracker->NoteHostAhead();
  for (;;) {
    tracker->AwaitRoom(launch->ticket);
    const std::uint32_t word = GateWord(session, slot);
    const std::uint64_t now = MonotonicNs();
    const bool is_gated = (word & abi::kFlagMask) != 0 && session->IsAlive();
    const bool is_bound = (is_gated || stream_gate_.IsOn()) && now < patience;
    const bool is_held = is_gated && is_bound && (word & abi::kHeld) != 0;
    if (std::exchange(seen, word) != word) tracker->WakeWaiting();
    const bool passes = is_held && WaitForTurn(session, slot, submission);
    if (is_held) patience = patience_from(MonotonicNs());  // that was the gate's time, not the window's
    const Window window = WindowFor(session, slot, word, submission.stream);
    if (tracker->Admit(&launch->ticket, window, passes || !is_bound)) break;
  }
  tracker->WakeWaiting();
}

// ---- called --------------------------------------------------------------------------------------------------------

// A call that drains its stream proves what was before it, and like one that reads it may wait.
void Client::BeginWait(const Submission& submission, TrackedLaunch* launch) {
  if (!submission.drains) return launch->tracker->BeginWait();
  const Snapshot before = launch->tracker->BeginSync(SyncScope::kStream, launch->ticket.stream);
  launch->drained_batch = before.last_batch;
  launch->drained_epoch = before.epoch;
}

void Client::EndWait(const Submission& submission, const TrackedLaunch& launch, bool ok) {
  if (!submission.drains) return launch.tracker->EndWait();
  launch.tracker->EndSync(
      Snapshot{SyncScope::kStream, launch.ticket.stream, launch.drained_batch, launch.drained_epoch}, ok);
}

}  // namespace xschedd::shim
