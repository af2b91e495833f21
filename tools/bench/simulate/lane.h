// One client on one device: what its launching thread does, what it has on the device, and what its shim knows and
// tells.
//
//   launched   kernels given to the device        started, completed   what the device made of them
//   settled    completed as far as the shim knows: it looks at markers, and at synchronisations
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
  kGap,      // for its own host work
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

inline constexpr std::uint64_t kMarkerCostNs = 1'000'000;  // the shim's limit to what is behind the last marker

struct Lane {
  std::uint32_t client = 0;
  std::uint32_t device = 0;
  std::uint32_t component = 0;
  std::uint32_t tenant = 0;  // index into its component's State::tenants
  std::uint32_t streams = 1;
  double spread = 0;

  // The launching thread.
  Waiting waiting = Waiting::kNothing;
  bool is_waking = false;  // a kWake or kPoll is on its way
  const Program* program = nullptr;
  Cursor next_launch;

  // On the device.
  Cursor next_start;
  Cursor next_end;
  std::uint64_t launched = 0;
  std::uint64_t started = 0;
  std::uint64_t completed = 0;
  std::uint32_t heads = 0;    // streams whose first kernel runs or waits to run
  std::uint32_t running = 0;  // kernels
  std::uint64_t running_since_ns = 0;
  std::uint64_t ran_ns = 0;  // time with a kernel running, overlap counted once

  // The shim.
  policy::Gate gate;
  std::uint64_t settled = 0;
  std::uint64_t settled_ran_ns = 0;    // ran_ns at that time
  bool knows_cost = false;             // what its launches cost; not before the first has settled
  std::uint64_t launched_cost_ns = 0;  // sums of what they cost, as the shim knows it
  std::uint64_t completed_cost_ns = 0;
  std::uint64_t settled_cost_ns = 0;
  std::uint64_t published_ns = 0;  // GPU time as told to the daemon
  bool busy = false;               // in a launch, or with unfinished work
  std::uint64_t busy_changed_ns = 0;
  std::uint64_t deadline_ns = 0;  // of its current request; 0: none

  std::uint64_t InFlight() const { return launched - completed; }

  bool HasWindow() const { return gate.tracked && gate.window_us != 0; }

  // Whether the next launch may join what is in flight: the shim's own rule.
  bool HasRoom() const {
    if (!HasWindow() || launched - settled < std::max(gate.window_floor, 1u)) return true;
    const std::uint64_t cost_ns = (*program)[next_launch.burst].kernel_ns;
    return knows_cost && launched_cost_ns - settled_cost_ns + cost_ns <= gate.window_us * policy::kNsPerUs;
  }

  // Whether a marker has been reached since the last look. Markers are `spacing_ns` of GPU time apart; 0: as the shim
  // has them, half a window and no more than kMarkerCostNs.
  bool IsMarkerReached(std::uint64_t spacing_ns) const {
    if (!gate.tracked || completed == settled) return false;
    if (spacing_ns == 0) {
      spacing_ns = HasWindow() ? std::min(kMarkerCostNs, gate.window_us * policy::kNsPerUs / 2) : kMarkerCostNs;
    }
    return completed_cost_ns - settled_cost_ns >= spacing_ns;
  }

  // All that has completed is known to have.
  void Settle(std::uint64_t now_ns) {
    if (completed == settled) return;
    const std::uint64_t ran = ran_ns + (running > 0 ? now_ns - running_since_ns : 0);
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
