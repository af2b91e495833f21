// Identifies a process among all that ever have its pid. Unlike a pidfd, it can be saved.
//
// Its start time (clock ticks since boot, /proc/PID/stat) on every kernel; where pidfds have inodes of their own (Linux
// 6.9, pidfs), that inode as well, which no other process of this boot has.
// Thread rule: any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "common/unique_fd.h"

namespace xschedd {

struct ProcessKey {
  std::uint64_t start_ticks = 0;  // 0: not known
  std::uint64_t pidfd_inode = 0;  // 0: not known
};

// Whether both keys, read for the same pid, identify one process. An unknown key matches nothing.
bool IsSame(const ProcessKey& one, const ProcessKey& other);

// Of the process behind `pidfd`, whose pid is `pid`. Not known if it has exited, or has no pid here.
ProcessKey ReadProcessKey(pid_t pid, int pidfd);

// A pidfd for the process that had `pid` when `key` was read. Invalid: it has exited, whoever has the pid now.
UniqueFd OpenProcess(pid_t pid, const ProcessKey& key);

}  // namespace xschedd
