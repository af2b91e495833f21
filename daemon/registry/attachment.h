// An attachment: one client on one device (the policy's "tenant"), and what the daemon knows about the two. The
// registry makes and removes it; the scheduler and the recorder keep it up to date. Thread rule: the daemon's one
// thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/policy/types.h"
#include "daemon/registry/burst_clock.h"
#include "daemon/registry/gpu_account.h"
#include "daemon/registry/history.h"
#include "daemon/registry/memory_account.h"
#include "daemon/registry/metered.h"
#include "daemon/registry/principal.h"
#include "daemon/registry/reason.h"

namespace xschedd {

struct Client;
struct Device;

struct Attachment {
  Client* client = nullptr;
  Device* device = nullptr;
  std::uint32_t slot = 0;
  Principal payer;            // whose quota it counts against, from its creation (Registry::PayerOf)
  bool is_under_mps = false;  // NVIDIA's MPS server runs its kernels, side by side with those of its other clients
  bool is_restored = false;   // from before a restart, and not reported again by its client yet
  bool busy = false;          // false also for a client that has fallen silent
  bool waits = false;         // busy, and its host waits for the device
  bool silent = false;        // was busy, and has not been heard from for too long (Client::silent_since_ns)
  std::uint64_t idle_since_ns = 0;  // 0: never was busy
  std::uint64_t busy_since_ns = 0;  // of the current burst
  BurstClock burst;
  GpuAccount gpu;  // while tracked
  // CLOCK_MONOTONIC: the earliest deadline of unfinished work; 0: none has a deadline, or it is idle.
  std::uint64_t deadline_ns = 0;
  // The shortest deadline that it hinted, counted from becoming busy; 0: none.
  std::uint64_t deadline_after_ns = 0;
  policy::Gate gate;
  Reason reason;                    // for `gate`
  std::uint64_t held_since_ns = 0;  // busy and held since then; 0: it is not
  std::uint64_t held_ns = 0;        // total of the holds that have ended
  // For the gatherer only: its place in the device's cluster, and whether it is listed there as touched.
  std::uint32_t index = 0;
  bool touched = false;
  MemoryAccount memory;
  History history;
  Metered metered;

  // All holds, including the current one up to `now_ns`.
  std::uint64_t HeldNsAt(std::uint64_t now_ns) const {
    return held_ns + (held_since_ns != 0 ? now_ns - std::min(now_ns, held_since_ns) : 0);
  }
  // By gate and level.
  Phase PhaseNow() const {
    if (!gate.tracked) return Phase::kUntracked;
    if (silent) return Phase::kSilent;
    if (!busy) return Phase::kIdle;
    return gate.held ? Phase::kHeld : Phase::kRunning;
  }
  // For the history: the time, and the GPU time in the client's ledger.
  Moment MomentAt(std::uint64_t now_ns) const;
};

}  // namespace xschedd
