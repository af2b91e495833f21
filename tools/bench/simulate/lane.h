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
  std::uint64_t settled_ran_ns = 0;  // ran_ns at that time
  std::uint64_t average_ns = 0;      // of a launch; 0: not known
  std::uint64_t published_ns = 0;    // GPU time as told to the daemon
  bool busy = false;                 // in a launch, or with unfinished work
  std::uint64_t busy_changed_ns = 0;
  std::uint64_t deadline_ns = 0;  // of its current request; 0: none

  std::uint64_t InFlight() const { return launched - completed; }

  // As in the shim: how many launches the window allows. Before anything is measured, the floor.
  std::uint64_t LaunchLimit() const {
    if (!gate.tracked || gate.window_us == 0) return policy::kNever;
    const std::uint64_t floor = std::max(gate.window_floor, 1u);
    return average_ns == 0 ? floor : std::max(floor, gate.window_us * policy::kNsPerUs / average_ns);
  }
  bool HasRoom() const { return launched - settled < LaunchLimit(); }

  // Launches from one marker to the next: half a window's, or as many as take `report_ns`, if that is not 0.
  std::uint64_t MarkerSpacing(std::uint64_t report_ns) const {
    const std::uint64_t limit = LaunchLimit();
    if (limit == policy::kNever) return policy::kNever;
    if (report_ns != 0 && average_ns != 0) return std::clamp<std::uint64_t>(report_ns / average_ns, 1, limit);
    return std::max<std::uint64_t>(limit / 2, 1);
  }

  // All that has completed is known to have.
  void Settle(std::uint64_t now_ns) {
    if (completed == settled) return;
    const std::uint64_t ran = ran_ns + (running > 0 ? now_ns - running_since_ns : 0);
    const std::uint64_t each = (ran - settled_ran_ns) / (completed - settled);
    if (gate.tracked) {
      published_ns += ran - settled_ran_ns;
      // 1/8 for the newest, as in the shim.
      average_ns = std::max<std::uint64_t>(average_ns == 0 ? each : (average_ns * 7 + each) / 8, 1);
    }
    settled = completed;
    settled_ran_ns = ran;
  }
};

}  // namespace xschedd::simulate
