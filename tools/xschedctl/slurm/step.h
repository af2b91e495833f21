// A step of a job of Slurm on this node, and the cgroup by which the daemon knows its processes: Slurm's own for the
// step, where Slurm makes one in the hierarchy that the daemon reads, else one that is made below slurmstepd's.
// Thread rule: StepClaimName, CgroupOfSlurm and CgroupOfOurs are pure; the rest change cgroups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd::ctl {

struct SlurmStep {
  std::uint32_t job = 0;
  std::string name;  // "0", "batch", "extern", "interactive"
};

inline constexpr std::string_view kStepClaimPrefix = "slurm-";
// "slurm-17.0"
std::string StepClaimName(const SlurmStep& step);

// `path`: slurmstepd's own cgroup. In "/system.slice/slurmstepd.scope/job_17/step_0/slurm" the step's is
// ".../job_17/step_0". None: the path has no such part.
std::optional<std::string> CgroupOfSlurm(std::string_view path, const SlurmStep& step);
// "/system.slice/slurmd.service/xschedd_17.0"
std::string CgroupOfOurs(std::string_view path, const SlurmStep& step);
// Whether the cgroup's name is one that CgroupOfOurs gives.
bool IsOurs(std::string_view cgroup);

// `directory`: the cgroup's. It may be there already.
Result<void> MakeCgroup(const std::string& directory);
// Removes the cgroup at the end of its step: waits a tenth of a second at most for its last process to be gone.
void RemoveSoon(const std::string& directory);
// Removes the cgroup if no process is in it; one that is younger than ten seconds may be about to get its first.
bool RemoveIfLeft(const std::string& directory);
// The same for each of ours in this directory: what slurmstepds that were killed have left.
void RemoveLeftIn(const std::string& directory);

}  // namespace xschedd::ctl
