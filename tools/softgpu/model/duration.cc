#include "tools/softgpu/model/duration.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace softgpu {

namespace {

// CDNA3: 64 lanes a wave, 32 waves and 64 KiB of LDS a compute unit.
constexpr uint32_t kWaveSize = 64;
constexpr uint32_t kWavesPerComputeUnit = 32;
constexpr uint32_t kLdsPerComputeUnit = 65'536;

// The cost model's only constants. They are chosen to be plausible, not measured: no figure of the software GPU is a
// GPU's.
constexpr uint64_t kKernelFixedNs = 4'000;
constexpr uint64_t kKernelRoundNs = 2'000;
constexpr uint64_t kCopyFixedNs = 5'000;

double bytes_per_ns(CopyPath path) {
  switch (path) {
    case CopyPath::kHostToDevice:
    case CopyPath::kDeviceToHost:
      return 50.0;
    case CopyPath::kPeer:
      return 45.0;
    case CopyPath::kDeviceToDevice:
      return 2'000.0;
  }
  return 50.0;
}

uint64_t mix(uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

uint32_t occupancy(const DispatchShape& shape) {
  const uint32_t waves = std::max(1u, (shape.workgroup_size + kWaveSize - 1) / kWaveSize);
  uint32_t groups = std::max(1u, kWavesPerComputeUnit / waves);
  if (shape.group_segment_size > 0)
    groups = std::min(groups, std::max(1u, kLdsPerComputeUnit / shape.group_segment_size));
  return groups;
}

uint32_t compute_units_needed(const DispatchShape& shape, uint32_t limit) {
  const uint64_t per_unit = occupancy(shape);
  const uint64_t needed = std::max<uint64_t>(1, (shape.workgroups + per_unit - 1) / per_unit);
  return static_cast<uint32_t>(std::min<uint64_t>(needed, std::max(1u, limit)));
}

uint64_t modelled_duration_ns(const DispatchShape& shape, uint32_t compute_units) {
  const uint64_t slots = static_cast<uint64_t>(occupancy(shape)) * std::max(1u, compute_units);
  const uint64_t rounds = std::max<uint64_t>(1, (shape.workgroups + slots - 1) / slots);
  return kKernelFixedNs + rounds * kKernelRoundNs;
}

uint64_t copy_duration_ns(CopyPath path, uint64_t bytes) {
  return kCopyFixedNs + static_cast<uint64_t>(static_cast<double>(bytes) / bytes_per_ns(path));
}

double jitter_factor(uint64_t seed, uint64_t stream, uint64_t sequence, double percent) {
  if (percent == 0.0) return 1.0;
  const uint64_t hash = mix(mix(mix(seed) ^ stream) ^ sequence);
  const double unit = static_cast<double>(hash >> 11) * 0x1.0p-53;  // [0, 1)
  return 1.0 + (2.0 * unit - 1.0) * percent / 100.0;
}

std::string DurationTable::load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return path + ": " + std::strerror(errno) + "; SOFTGPU_DURATIONS must name a readable file";
  std::ostringstream text;
  text << file.rdbuf();
  return parse(text.str(), path);
}

std::string DurationTable::parse(const std::string& text, const std::string& origin) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = line.substr(0, line.find('#'));
    std::istringstream words(line);
    std::string glob;
    if (!(words >> glob)) continue;
    double microseconds = -1;
    std::string rest;
    if (!(words >> microseconds) || microseconds < 0 || !std::isfinite(microseconds) || (words >> rest)) {
      return origin + ":" + std::to_string(number) + ": expected 'name_or_glob microseconds'";
    }
    lines_.push_back({glob, static_cast<uint64_t>(microseconds * 1000.0)});
  }
  return "";
}

std::optional<uint64_t> DurationTable::duration_ns(const char* kernel_name) const {
  for (const Line& line : lines_) {
    if (fnmatch(line.glob.c_str(), kernel_name, 0) == 0) return line.ns;
  }
  return std::nullopt;
}

}  // namespace softgpu
