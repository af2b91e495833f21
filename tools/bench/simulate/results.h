// The results of a simulation. Thread rule: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xschedd::simulate {

struct ClassResult {
  std::string name;
  std::uint32_t clients = 0;
  std::uint64_t requests = 0;               // that ended; of saturating clients: kernels
  std::vector<std::uint64_t> latencies_ns;  // sorted; of requests that ended; empty for saturating clients
  std::uint64_t misses = 0;                 // requests that ended after their deadline
  std::uint64_t dropped = 0;                // requests that came while a client with `drops` was at work
  bool has_deadline = false;
  std::uint64_t kernels = 0;  // that ended
  std::uint64_t gpu_ns = 0;   // of the kernels that ran, to the end of the run
  std::uint64_t work_ns = 0;  // with work, all clients together
  std::uint64_t held_ns = 0;  // of that, with a shut gate, as the scheduler counts it
  std::uint64_t beside_ns =
      0;  // of that, with an open gate beside a busy more important client that does not gain from holding
  std::uint64_t longest_ns = 0;  // the longest time that one of them had work and none of its kernels ended
  // Largest difference, over any second, between the part of its devices that it got and the part that its weight gives
  // it, in percentage points. NaN unless all clients of its devices saturate them.
  double share_error = 0;

  // Nearest rank, in ms; NaN without latencies.
  double QuantileMs(double fraction) const;
};

struct Results {
  std::uint64_t length_ns = 0;
  std::vector<ClassResult> classes;  // in the order of the workload
  std::vector<std::uint64_t> device_busy_ns;
  std::uint64_t launched = 0;
  std::uint64_t completed = 0;
  std::uint64_t left = 0;  // launched and not completed at the end
  std::uint64_t decisions = 0;
  std::uint64_t gate_changes = 0;
  std::uint64_t context_switches = 0;  // of devices with time slices
  std::uint64_t events = 0;

  std::uint64_t GpuNs() const;
};

}  // namespace xschedd::simulate
