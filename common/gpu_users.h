// Processes that compute on a GPU, by /proc and KFD: those that have /dev/kfd or /dev/nvidia-uvm open. Monitors and
// desktops open other files of the drivers, and do not count. Thread rule: reads files; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace xschedd {

struct GpuUser {
  std::uint64_t pid = 0;
  std::uint64_t parent = 0;
  bool is_hidden = false;       // KFD lists it, and the caller may not read its descriptors
  std::set<std::string> files;  // device files of GPUs that it has open: "/dev/nvidia0", "/dev/dri/renderD128"
};

struct GpuUsers {
  std::vector<GpuUser> users;         // by pid
  std::vector<std::uint64_t> hidden;  // processes that the caller may not inspect, and that KFD does not list
  bool is_complete = true;            // false: more than `limit`, or the search was stopped
};

inline constexpr std::size_t kMaxGpuUsers = 4096;

// `root`: a prefix to /proc and /sys. `keep_going` is called before each process; false stops the search.
GpuUsers FindGpuUsers(const std::string& root, const std::function<bool()>& keep_going = {},
                      std::size_t limit = kMaxGpuUsers);

}  // namespace xschedd
