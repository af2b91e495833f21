// How long a dispatch or a copy takes, and how many compute units a dispatch needs.
// Contract: pure functions of their arguments, but for DurationTable::load, which reads a file once.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace softgpu {

// The properties of a dispatch on which its time depends.
struct DispatchShape {
  uint64_t workgroups = 1;
  uint32_t workgroup_size = 64;     // work items
  uint32_t group_segment_size = 0;  // bytes of LDS
};

// Workgroups of this shape that one compute unit holds at a time.
uint32_t occupancy(const DispatchShape& shape);
// min(workgroups / occupancy, limit), at least 1.
uint32_t compute_units_needed(const DispatchShape& shape, uint32_t limit);
// The cost model for unknown kernels: a fixed part, and a part for each round in which the grid fits on
// `compute_units`.
uint64_t modelled_duration_ns(const DispatchShape& shape, uint32_t compute_units);

enum class CopyPath { kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeer };
uint64_t copy_duration_ns(CopyPath path, uint64_t bytes);

// Deterministic spread: the factor depends only on the arguments and lies in 1 ± percent/100.
double jitter_factor(uint64_t seed, uint64_t stream, uint64_t sequence, double percent);

// SOFTGPU_DURATIONS: lines of `name_or_glob microseconds`; '#' starts a comment; the first line that matches counts.
class DurationTable {
 public:
  // Returns an empty string, or one line that says what is wrong.
  std::string load(const std::string& path);
  std::string parse(const std::string& text, const std::string& origin);
  std::optional<uint64_t> duration_ns(const char* kernel_name) const;

 private:
  struct Line {
    std::string glob;
    uint64_t ns;
  };
  std::vector<Line> lines_;
};

}  // namespace softgpu
