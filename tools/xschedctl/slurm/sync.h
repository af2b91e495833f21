// `xschedctl slurm sync`: what `scontrol update job` changed becomes the jobs' claims'. Thread rule: main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/slurm/limits.h"

namespace xschedd::ctl {

// The labels of a claim that have what the user asked for.
inline constexpr char kRequestLabel[] = "gpu-priority";
inline constexpr char kMemoryRequestLabel[] = "gpu-memory";
inline constexpr std::size_t kMaxRequestBytes = 64;

// Gives a claim this limit of device memory in bytes; 0: none.
void SetMemory(std::uint64_t limit, v1::Claim& claim);

// Appends what the ended claim of a step has used to the node's account (usage.h). Prints what keeps it from that.
void RecordUsage(AdminClient& client, const std::string& name);

// Puts again the claims of steps whose priority or memory limit is another now, removes those of jobs that have ended,
// and prints a line for each. Changes nothing where Slurm does not answer.
Outcome<ExitCode> SyncClaims(AdminClient& client, const SlurmLimits& limits);

}  // namespace xschedd::ctl
