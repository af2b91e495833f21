#include "common/gpu_users.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace xschedd {
namespace {

namespace fs = std::filesystem;

// Where a process has more, the driver's are among the first: the runtime opens them when it starts.
constexpr int kMaxDescriptors = 4096;

enum class Uses { kNo, kYes, kCannotSee };

Uses ReadDescriptors(const fs::path& process, std::set<std::string>& files) {
  std::error_code error;
  fs::directory_iterator descriptors(process / "fd", error);
  if (error == std::errc::permission_denied) return Uses::kCannotSee;
  bool computes = false;
  // Any other error: the process has ended.
  for (int i = 0; !error && descriptors != fs::directory_iterator() && i < kMaxDescriptors; ++i) {
    std::error_code gone;
    const std::string target = fs::read_symlink(descriptors->path(), gone).native();
    const std::string_view name = target;
    if (name == "/dev/kfd" || name == "/dev/nvidia-uvm") {
      computes = true;
    } else if (name.starts_with("/dev/nvidia") || name.starts_with("/dev/dri/renderD")) {
      files.insert(target);
    }
    descriptors.increment(error);
  }
  return computes ? Uses::kYes : Uses::kNo;
}

std::uint64_t ParentOf(const fs::path& process) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("PPid:")) return std::strtoull(line.c_str() + 5, nullptr, 10);
  }
  return 0;
}

}  // namespace

GpuUsers FindGpuUsers(const std::string& root, const std::function<bool()>& keep_going, std::size_t limit) {
  GpuUsers found;
  std::error_code error;
  fs::directory_iterator processes(root + "/proc", error);
  for (; !error && processes != fs::directory_iterator(); processes.increment(error)) {
    const fs::path& path = processes->path();
    const std::string name = path.filename().native();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (found.users.size() == limit || (keep_going && !keep_going())) {
      found.is_complete = false;
      break;
    }
    GpuUser user;
    user.pid = std::strtoull(name.c_str(), nullptr, 10);
    Uses uses = ReadDescriptors(path, user.files);
    if (uses == Uses::kCannotSee) {
      // KFD lists processes of all users.
      std::error_code ignored;
      uses = fs::exists(fs::path(root + "/sys/class/kfd/kfd/proc") / name, ignored) ? Uses::kYes : Uses::kCannotSee;
      user.is_hidden = uses == Uses::kYes;
      if (!user.is_hidden) found.hidden.push_back(user.pid);
    }
    if (uses != Uses::kYes) continue;
    user.parent = ParentOf(path);
    found.users.push_back(std::move(user));
  }
  std::sort(found.users.begin(), found.users.end(), [](const GpuUser& a, const GpuUser& b) { return a.pid < b.pid; });
  return found;
}

}  // namespace xschedd
