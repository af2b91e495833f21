// The path of a launch through the client, from the program's call of a wrapper to its return:
//
//   asked     does this launch count? If the program holds its own work, or the stream is below others of the process,
//             the launch waits here, and does not count yet
//   waited    at the gate, while the client is held; a client that waits is busy
//   admitted  in flight, once the window has room
//   called    by the stub, between SubmitBegin and SubmitEnd
//   counted   or taken back if the call failed
//
// SubmitBegin and SubmitEnd are the whole path, from top to bottom. The functions below them are the steps that most
// launches skip. A launch that need not wait takes the tracker's lock once before the call and once after it, if it
// takes it at all (stream_accounts.h). The TrackedLaunch owns what the path holds, so an exception releases it, too.
//
// Thread rule: any thread; a launch begins and ends on the same one.
#include "client-shim/core/tracked_launch.h"

#include <algorithm>
#include <utility>

#include "client-shim/core/carried.h"
#include "client-shim/core/client.h"
#include "client-shim/core/stream_order.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// The longest wait for room, where launches are known to take longer than the lease.
constexpr std::uint64_t kLongestWindowWaitNs = 2'000'000'000;

// How often launches that are not counted check whether markers still keep them from the fast launch path.
constexpr std::uint64_t kMarkerCheckIntervalNs = 10'000'000;

// The kernel, whatever its grid. 0: not a single kernel.
LaunchKey FunctionOf(const Submission& submission) {
  return submission.kernel.kind == KernelKind::kNone ? 0 : reinterpret_cast<std::uintptr_t>(submission.kernel.handle);
}

}  // namespace

void Client::SubmitBegin(Submission* submission) {
  auto& place = Carried<TrackedLaunch>::Begin(submission->core);  // empty unless the launch counts
  submission->stop = nullptr;

  // ---- asked
  if (requests_.HoldsAny()) [[unlikely]]
    WaitWhileOwnHeld(*submission);
  // While streams are ordered, everything counts, even without a daemon.
  const bool orders_streams = stream_gate_.IsOn();
  if (orders_streams) [[unlikely]]
    WaitForStreams(*submission);
  SessionUse use(session_);
  Session* const session = use.Get();
  if (session == nullptr && !orders_streams) return CheckForMarkersPeriodically();
  // Work given to a capturing stream does not run. The launch of the graph counts.
  if (captures_.Any() && stub_.vendor->is_capturing(submission->stream)) return;
  const int device = DeviceOf(submission->stream);
  if (!IsDevice(device)) return;
  Attach(device);
  const auto slot = static_cast<std::uint32_t>(device);
  const std::uint32_t word = GateWord(session, slot);
  const std::uint64_t now = MonotonicNs();
  if (!orders_streams && !IsCounted(*session, word, now)) return CheckForMarkersPeriodically();
  TrackedLaunch& launch = place.Put(std::move(use), trackers_.Of(device), KeyOf(submission->stream), submission->key,
                                    FunctionOf(*submission));

  // ---- waited, admitted
  // A gate that was open a moment ago is not read again. Both steps share one condition: with one for each, every
  // launch was longer by one to three instructions.
  const bool is_open = !passthrough_.Any() && (word & abi::kHeld) == 0;
  const Window window =
      orders_streams ? WindowFor(session, slot, word, submission->stream) : WindowOf(*session, slot, word);
  if (!is_open || !launch.on_device.Begin(window, submission->may_time, now)) [[unlikely]] {
    const bool passes = !is_open && EnterAndPassGate(*submission, slot, now, &launch);
    WaitForRoomAndStart(*submission, slot, passes, &launch);
  }

  // ---- called
  // relaxed: the launch was counted above, under a lock that CheckForMarkers takes after it has cleared the flag. So it
  // sees this launch, or this load sees the cleared flag.
  if (!expects_markers_.load(std::memory_order_relaxed)) [[unlikely]]
    ExpectMarkers();
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

// A launch that does not count may be on the slow path only because of markers behind earlier work.
void Client::CheckForMarkersPeriodically() {
  // relaxed, all: an extra check, or a late one, does no harm.
  if (!expects_markers_.load(std::memory_order_relaxed)) return;
  const std::uint64_t now = MonotonicNs();
  if (now - markers_checked_ns_.load(std::memory_order_relaxed) < kMarkerCheckIntervalNs) return;
  markers_checked_ns_.store(now, std::memory_order_relaxed);
  CheckForMarkers(now);
}

// Whether the program's own holds and order of streams leave the launch alone.
bool Client::NeverWaits(const Submission& submission) {
  return (captures_.Any() && stub_.vendor->is_capturing(submission.stream)) ||
         passthrough_.Match(submission, *stub_.vendor) != nullptr;
}

// Before the client is busy: a program that holds its own work must not hold others.
void Client::WaitWhileOwnHeld(const Submission& submission) {
  if (NeverWaits(submission)) return;
  requests_.WaitWhileHeld(DeviceOf(submission.stream), submission.stream);
}

// ---- waited --------------------------------------------------------------------------------------------------------

// Returns whether the call is passed through. Such a call still makes the client busy and uses GPU time; it only never
// waits, and is never launched in another form.
bool Client::EnterAndPassGate(const Submission& submission, std::uint32_t slot, std::uint64_t now_ns,
                              TrackedLaunch* launch) {
  launch->on_device.Enter(now_ns);
  return PassGate(launch->use.Get(), slot, submission);
}

// Waits at the gate, unless configuration passes the call through: then counts that, and returns true.
bool Client::PassGate(Session* session, std::uint32_t slot, const Submission& submission) {
  for (;;) {
    const std::uint32_t epoch = passthrough_.Epoch();
    if (abi::Counter* const passed = passthrough_.Match(submission, *stub_.vendor)) {
      // relaxed: statistics.
      passed->fetch_add(1, std::memory_order_relaxed);
      if (session != nullptr) session->Ledger().Device(slot).passthrough.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    if (session == nullptr) return false;
    if (WaitAtGate(session, slot, passthrough_.EpochWord(), epoch, SpinCreditHere())) return false;
  }
}

// ---- admitted ------------------------------------------------------------------------------------------------------

// `passes`: the call is passed through, and finds room in any case.
void Client::WaitForRoomAndStart(const Submission& submission, std::uint32_t slot, bool passes, TrackedLaunch* launch) {
  Session* const session = launch->use.Get();
  const Window window = WindowFor(session, slot, GateWord(session, slot), submission.stream);
  if (!launch->on_device.Admit(window, passes)) WaitForRoom(submission, slot, launch);
  launch->on_device.Start(submission.may_time && !passes);
}

// After Admit has refused: waits until the launch is admitted.
void Client::WaitForRoom(const Submission& submission, std::uint32_t slot, TrackedLaunch* launch) {
  Session* const session = launch->use.Get();
  DeviceTracker* const tracker = launch->on_device.Tracker();
  // Work in flight may itself wait for what this thread is about to submit (a stream that waits for a value, a kernel
  // that waits for the host). So the wait is bounded by the lease, or by what launches are known to take. Without
  // markers nothing would end it, so there is no wait.
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
    const bool passes = is_held && PassGate(session, slot, submission);
    if (is_held) patience = patience_from(MonotonicNs());  // time at the gate does not count
    const Window window = WindowFor(session, slot, word, submission.stream);
    if (launch->on_device.Admit(window, passes || !is_bound)) break;
  }
  tracker->WakeWaiting();
}

}  // namespace xschedd::shim
