// Identifies a process among all that ever have its pid. Unlike a pidfd, it can be saved.
//
// On every kernel it has the start time (clock ticks since boot, /proc/PID/stat). Where each process has an inode in
// pidfs (Linux 6.9), it has that as well, which no other process of this boot has. Thread rule: any thread.
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

// The key of the process behind `pidfd`, whose pid is `pid`; all 0 if it has exited, or has no pid here.
ProcessKey ReadProcessKey(pid_t pid, int pidfd);

// A pidfd for the process that had `pid` when `key` was read. Invalid: it has exited, even if another
// process has the pid now.
UniqueFd OpenProcess(pid_t pid, const ProcessKey& key);

}  // namespace xschedd
