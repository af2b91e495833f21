// The node's account of what Slurm's steps have used of its GPUs, which all users can read: a line of JSON for each
// step that has ended. Thread rule: any process; writers take turns by a lock on the file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd::ctl {

inline constexpr char kSlurmUsagePath[] = "/var/log/xschedd-slurm.jsonl";
// Beyond it the file becomes PATH.1, in place of an earlier one.
inline constexpr std::size_t kMaxUsageBytes = std::size_t{8} << 20;

// Appends the line, in a file that is made for all to read; one that is there keeps its mode and owner, also when it is
// made anew. A line that is among the last ones is not written again: a step's end and `slurm sync` may both report it.
Result<void> AppendUsage(const std::string& path, std::string_view line, std::size_t max_bytes = kMaxUsageBytes);

}  // namespace xschedd::ctl
