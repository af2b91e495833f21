// Asks Slurm's controller about jobs, by squeue. Its fields are all administrators' words or numbers, and none is a
// user's text: `scontrol show job` has the job's name among its fields, which could forge any of them. Thread rule:
// ParseJobs is pure; AskSlurm starts a program, and waits a second for it at most.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "tools/xschedctl/slurm/limits.h"

namespace xschedd::ctl {

// What `squeue` printed in the format of AskSlurm. Leaves out lines that are not jobs.
std::vector<SlurmJob> ParseJobs(std::string_view text);

// The jobs with these ids that the controller still knows. An array's first task may bring the whole array.
Result<std::vector<SlurmJob>> AskSlurm(const std::vector<std::uint32_t>& ids);

}  // namespace xschedd::ctl
