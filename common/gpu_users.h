// Processes that compute on a GPU, as /proc and KFD show them: those that have /dev/kfd or /dev/nvidia-uvm open.
// (Monitors and desktops have other files of the drivers open, and are not meant.) Thread rule: reads files; any
// thread.
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
  bool is_hidden = false;  // KFD says so; the caller may not look into it
  // Device files of GPUs that it has open: "/dev/nvidia0", "/dev/dri/renderD128".
  std::set<std::string> files;
};

struct GpuUsers {
  std::vector<GpuUser> users;         // by pid
  std::vector<std::uint64_t> hidden;  // processes into which the caller may not look, and that KFD does not know
  bool is_whole = true;               // false: there are more than `most`, or it was stopped
};

inline constexpr std::size_t kMaxGpuUsers = 4096;

// `root`: of the folders proc and sys. `goes_on` is asked before each process; false ends it.
GpuUsers FindGpuUsers(const std::string& root, const std::function<bool()>& goes_on = {},
                      std::size_t most = kMaxGpuUsers);

}  // namespace xschedd
