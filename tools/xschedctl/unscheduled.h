// Programs that compute on a GPU without being clients of the daemon, as /proc and KFD show them: processes with
// /dev/kfd or /dev/nvidia-uvm open. (Monitors and desktops open other files of the drivers, and are not listed.) Thread
// rule: reads files; main thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "admin.pb.h"

namespace xschedd::ctl {

struct UnscheduledProcess {
  std::uint64_t pid = 0;
  std::uint32_t uid = 0;
  std::string command;  // its name, without arguments
  std::string reason;   // "shim not preloaded"; empty: not known
};

struct UnscheduledProcesses {
  std::vector<UnscheduledProcess> processes;  // by pid
  bool is_complete = true;                    // false: this user may not look into some processes
};

// `clients`: their pids, and whether these are all that the daemon has. `root`: the folder that contains proc and sys.
UnscheduledProcesses FindUnscheduled(const std::set<std::uint64_t>& clients, bool are_all_clients,
                                     const std::string& root = {});
// The same for the clients in the daemon's answer.
UnscheduledProcesses FindUnscheduled(const v1::ListClientsResponse& answer);

}  // namespace xschedd::ctl
