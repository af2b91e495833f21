// What GPU priority a job of Slurm has, and how much of a GPU's memory: from /etc/xschedd/slurm.toml, from what Slurm
// says about the job, and from what its user asked for with --gpu-priority and --gpu-memory. Only administrators write
// the first two. Thread rule: pure functions, but for ReadLimits, which reads a file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd::ctl {

inline constexpr char kSlurmLimitsPath[] = "/etc/xschedd/slurm.toml";

struct SlurmLimit {
  std::optional<int> priority;          // of jobs that ask for none
  std::optional<int> ceiling;           // the highest that --gpu-priority gives
  std::optional<std::uint64_t> memory;  // the most bytes of device memory of a step on each device
};

struct SlurmLimits {
  SlurmLimit general;
  std::map<std::string, SlurmLimit> partitions;
  std::map<std::string, SlurmLimit> qos;
  std::map<std::string, SlurmLimit> accounts;
  std::map<std::string, int> words = {{"low", -20}, {"normal", 0}, {"high", 20}};
  // Slurm's own priority from which a job has this GPU priority, unless it asks for one.
  std::map<std::uint64_t, int> by_slurm_priority;
  std::uint32_t nice_unit = 100;  // so many of Slurm's nice lower the GPU priority by 1; 0: nice does not count
};

// What Slurm says about a job; "(null)" and "N/A" are empty.
struct SlurmJob {
  std::uint32_t id = 0;
  std::string partition;
  std::string qos;
  std::string account;
  std::int64_t nice = 0;
  std::uint64_t priority = 0;
  std::string state;  // "RUNNING"

  // Whether it may have processes on its nodes.
  bool IsLive() const;
};

struct GpuPriority {
  int value = 0;
  std::string remark;  // for the job's log: why it is not what --gpu-priority says; empty: it is
};

// Fails on the first mistake, with its place, cause and remedy.
Result<SlurmLimits> ParseLimits(std::string_view text, const std::string& path);
// An absent file sets nothing: then all jobs have 0, and can only ask for less.
Result<SlurmLimits> ReadLimits(const std::string& path);

// `request`: --gpu-priority as its user wrote it; empty: not given. A wrong one counts as not given.
GpuPriority PriorityOf(const SlurmLimits& limits, const SlurmJob& job, std::string_view request);

struct GpuMemory {
  std::uint64_t limit = 0;  // bytes on each device, of all processes of a step together; 0: none
  std::string remark;       // for the job's log: why it is not what --gpu-memory says; empty: it is
};

// `request`: --gpu-memory as its user wrote it; empty: not given. A wrong one counts as not given.
GpuMemory MemoryOf(const SlurmLimits& limits, const SlurmJob& job, std::string_view request);

}  // namespace xschedd::ctl
