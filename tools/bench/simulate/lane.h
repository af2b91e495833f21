// One client on one device: what its launching thread does, what it has on the device, and what its shim knows and
// reports.
//
//   launched   kernels given to the device        started, completed   as the device sees them
//   settled    completed as far as the shim knows, from markers and synchronisations
//
// Thread rule: belongs to one simulation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/policy/types.h"
#include "tools/bench/simulate/workload.h"

namespace xschedd::simulate {

enum class Waiting : std::uint8_t {
  kNothing,  // it has no request
  kGate,     // for its gate
  kWindow,   // for room in its window
  kDepth,    // saturating: for one of its kernels to end
  kSync,     // for all that it launched
  kHost,     // for its own host work before a launch; what it launched goes on
  kGap,      // for its own host work after a synchronisation
};

// A place in a program.
struct Cursor {
  std::uint32_t burst = 0;
  std::uint32_t done = 0;  // kernels of that burst

  bool IsAtEnd(const Program& program) const { return burst == program.size(); }
  // Past one kernel.
  void Advance(const Program& program) {
    if (++done < program[burst].count) return;
    done = 0;
    ++burst;
  }
};

inline constexpr std::uint64_t kMarkerCostNs = 1'000'000;  // the shim's limit for work behind the last marker

struct Lane {
  std::uint32_t client = 0;
  std::uint32_t device = 0;
  std::uint32_t component = 0;
  std::uint32_t tenant = 0;   // index into its component's State::tenants
  std::uint32_t context = 0;  // of its device
  std::uint32_t streams = 1;
  double spread = 0;

  // The launching thread.
  Waiting waiting = Waiting::kNothing;
  bool is_waking = false;    // a kWake or kPoll is on its way
  bool is_prepared = false;  // the host work before the next launch is done
  const Program* program = nullptr;
  Cursor next_launch;

  // On the device.
  Cursor next_start;
  Cursor next_end;
  std::uint64_t launched = 0;
  std::uint64_t started = 0;
  std::uint64_t completed = 0;
  std::uint32_t heads = 0;    // streams whose first kernel runs or waits to run
  std::uint32_t running = 0;  // kernels that have begun; with time slices they may be interrupted
  std::uint64_t gpu_ns = 0;   // time with a running kernel, overlap counted once
  std::uint64_t gpu_until_ns = 0;

  // The shim.
  policy::Gate gate;
  // GPU time as markers show it: with a running kernel; with time slices, from the first kernel's begin until nothing
  // is in flight, which includes other clients' slices.
  bool is_measured = false;
  std::uint64_t measured_since_ns = 0;
  std::uint64_t ran_ns = 0;  // until then
  std::uint64_t settled = 0;
  std::uint64_t settled_ran_ns = 0;    // ran_ns at that time
  bool knows_cost = false;             // what its launches cost; not before the first has settled
  std::uint64_t launched_cost_ns = 0;  // sums of their costs as the shim knows them
  std::uint64_t completed_cost_ns = 0;
  std::uint64_t settled_cost_ns = 0;
  std::uint64_t published_ns = 0;  // GPU time as reported to the daemon
  bool busy = false;               // in a launch, or with unfinished work
  std::uint64_t busy_changed_ns = 0;
  std::uint64_t busy_ns = 0;      // until then
  std::uint64_t progress_ns = 0;  // when it became busy, or a later end of a kernel
  std::uint64_t longest_ns = 0;   // the longest time with work in which no kernel ended
  std::uint64_t deadline_ns = 0;  // of its current request; 0: none

  std::uint64_t InFlight() const { return launched - completed; }

  // A kernel has ended, or the run.
  void NoteProgress(std::uint64_t now_ns) {
    if (busy) longest_ns = std::max(longest_ns, now_ns - progress_ns);
    progress_ns = now_ns;
  }

  bool HasWindow() const { return gate.tracked && gate.window_us != 0; }

  // Whether the next launch may join what is in flight: the shim's rule.
  bool HasRoom() const {
    if (!HasWindow() || launched - settled < std::max(gate.window_floor, 1u)) return true;
    const std::uint64_t cost_ns = (*program)[next_launch.burst].kernel_ns;
    return knows_cost && launched_cost_ns - settled_cost_ns + cost_ns <= gate.window_us * policy::kNsPerUs;
  }

  // Whether a marker has been reached since the last look. Markers are `spacing_ns` of GPU time apart; 0: as in the
  // shim, half a window but no more than kMarkerCostNs.
  bool IsMarkerReached(std::uint64_t spacing_ns) const {
    if (!gate.tracked || completed == settled) return false;
    if (spacing_ns == 0) {
      spacing_ns = HasWindow() ? std::min(kMarkerCostNs, gate.window_us * policy::kNsPerUs / 2) : kMarkerCostNs;
    }
    return completed_cost_ns - settled_cost_ns >= spacing_ns;
  }

  void StartMeasuring(std::uint64_t now_ns) {
    if (!is_measured) measured_since_ns = now_ns;
    is_measured = true;
  }
  void StopMeasuring(std::uint64_t now_ns) {
    ran_ns += now_ns - measured_since_ns;
    is_measured = false;
  }

  // Records that the shim knows of all completed kernels.
  void Settle(std::uint64_t now_ns) {
    if (completed == settled) return;
    const std::uint64_t ran = ran_ns + (is_measured ? now_ns - measured_since_ns : 0);
    if (gate.tracked) {
      published_ns += ran - settled_ran_ns;
      knows_cost = true;
    }
    settled_cost_ns = completed_cost_ns;
    settled = completed;
    settled_ran_ns = ran;
  }
};

}  // namespace xschedd::simulate
