// What is simulated: devices, clients and their work. docs/contributing/simulator.md describes the file format. Thread
// rule: values and pure functions.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "common/result.h"

namespace xschedd::simulate {

// Kernels launched one after the other.
struct Burst {
  std::uint64_t kernel_ns = 0;
  std::uint32_t count = 1;
  std::uint64_t launch_ns = 0;  // host time before each of them, in which the device continues with earlier ones
  // If not 0: the client synchronises after each of them and then works this long on the host.
  std::uint64_t gap_ns = 0;
};

using Program = std::vector<Burst>;

// One request of its own, as from a trace.
struct GivenRequest {
  std::uint64_t at_ns = 0;    // its arrival; in a closed loop the pause after the previous one
  std::uint32_t program = 0;  // index into ClientSpec::programs
};

enum class ArrivalKind {
  kPoisson,     // open loop, `rate` per second
  kPeriodic,    // open loop, every `period_ns` from `phase_ns`
  kOnOff,       // open loop, Poisson of `rate` in the on-times of alternating on- and off-times, exponentially long
  kClosed,      // the next comes `think_ns` after the end of the last
  kSaturating,  // always keeps `depth` kernels launched; each kernel counts as a request
  kGiven,       // GivenRequest, open loop
  kGivenClosed  // GivenRequest, closed loop
};

struct Arrivals {
  ArrivalKind kind = ArrivalKind::kSaturating;
  double rate = 0;
  std::uint64_t period_ns = 0;
  std::uint64_t phase_ns = 0;
  std::uint64_t on_ns = 0;   // on average
  std::uint64_t off_ns = 0;  // on average
  std::uint64_t think_ns = 0;
  std::uint32_t depth = 0;
  // Periodic: requests that arrive while the client is at work are dropped and count as deadline misses.
  bool drops = false;
};

// A process. With several devices, each request's program runs on all of them and ends when the last has ended.
struct ClientSpec {
  std::string name;
  std::string class_name;  // a line of the table
  std::string group;       // empty: a group of its own
  std::string owner;       // of shares by level; empty: itself
  std::vector<std::uint32_t> devices;
  int priority = 0;
  std::uint32_t weight = 100;
  std::uint64_t deadline_ns = 0;  // from a request's arrival; 0: none
  std::uint32_t streams = 1;      // hardware queues over which its kernels are distributed
  bool barrier = false;           // ranks of a group wait for each other on the host after each request
  double spread = 0;              // of kernel durations: uniform between (1 - spread) and (1 + spread) times
  Arrivals arrivals;
  std::vector<Program> programs;  // one, except for given requests
  std::vector<GivenRequest> given;
};

// How a device runs kernels and shares itself among processes.
struct DeviceKind {
  std::uint32_t side_by_side = 1;  // kernels at a time, of all clients or, with time slices, of one
  double slower = 0;               // for each kernel beside it, a kernel takes longer by this part of its time
  // If not 0: clients take turns in time slices, of this length unless their gate sets another.
  std::uint64_t slice_ns = 0;
  std::uint64_t switch_ns = 0;  // duration of each switch from one client to the next

  bool HasSlices() const { return slice_ns != 0; }
};

struct Workload {
  std::string name;
  std::uint32_t devices = 1;
  DeviceKind kind;
  std::uint64_t length_ns = 0;
  std::vector<ClientSpec> clients;
};

// Reads JSON lines. An error names `source` and the line.
Result<Workload> ReadWorkload(std::istream& input, const std::string& source);

// Writes what ReadWorkload reads.
void WriteWorkload(const Workload& workload, std::ostream& output);

}  // namespace xschedd::simulate
