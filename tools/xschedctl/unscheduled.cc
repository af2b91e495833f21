#include "tools/xschedctl/unscheduled.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tools/xschedctl/doctor/gather_process.h"
#include "tools/xschedctl/file_text.h"

namespace xschedd::ctl {
namespace {

namespace fs = std::filesystem;

enum class HasGpuOpen { kNo, kYes, kCannotSee };

HasGpuOpen LookAtDescriptors(const fs::path& process) {
  std::error_code error;
  fs::directory_iterator descriptors(process / "fd", error);
  if (error == std::errc::permission_denied) return HasGpuOpen::kCannotSee;
  // Any other error: it has ended meanwhile.
  for (; !error && descriptors != fs::directory_iterator(); descriptors.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(descriptors->path(), gone).string();
    if (target == "/dev/kfd" || target == "/dev/nvidia-uvm") return HasGpuOpen::kYes;
  }
  return HasGpuOpen::kNo;
}

std::uint64_t ParentOf(const fs::path& process) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("PPid:")) return std::strtoull(line.c_str() + 5, nullptr, 10);
  }
  return 0;
}

std::string ReasonOf(const fs::path& process, const std::set<std::uint64_t>& clients) {
  // A forked process inherits what its parent has open, and has no use of it.
  if (const std::uint64_t parent = ParentOf(process); clients.contains(parent)) {
    return "child of pid " + std::to_string(parent);
  }
  const std::string maps = FileText(process / "maps");
  if (maps.empty()) return {};
  ProcessFacts facts;
  ReadMaps(maps, &facts);
  return facts.maps_shim ? "no session" : "shim not preloaded";
}

}  // namespace

UnscheduledProcesses FindUnscheduled(const std::set<std::uint64_t>& clients, bool are_all_clients,
                                     const std::string& root) {
  UnscheduledProcesses found;
  std::error_code error;
  fs::directory_iterator processes(root + "/proc", error);
  for (; !error && processes != fs::directory_iterator(); processes.increment(error)) {
    const fs::path& path = processes->path();
    const std::string name = path.filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::uint64_t pid = std::strtoull(name.c_str(), nullptr, 10);
    if (clients.contains(pid)) continue;
    HasGpuOpen has_gpu = LookAtDescriptors(path);
    if (has_gpu == HasGpuOpen::kCannotSee) {
      // KFD lists processes of all users; one that this user may not see could be a client.
      std::error_code ignored;
      const bool is_listed = are_all_clients && fs::exists(root + "/sys/class/kfd/kfd/proc/" + name, ignored);
      if (!is_listed) {
        found.is_complete = false;
        continue;
      }
      has_gpu = HasGpuOpen::kYes;
    }
    struct stat status {};
    if (has_gpu != HasGpuOpen::kYes || ::stat(path.c_str(), &status) != 0) continue;
    std::string command = FileText(path / "comm");
    if (!command.empty() && command.back() == '\n') command.pop_back();
    found.processes.push_back({pid, status.st_uid, command, ReasonOf(path, clients)});
  }
  std::sort(found.processes.begin(), found.processes.end(),
            [](const UnscheduledProcess& a, const UnscheduledProcess& b) { return a.pid < b.pid; });
  return found;
}

UnscheduledProcesses FindUnscheduled(const v1::ListClientsResponse& answer) {
  std::set<std::uint64_t> clients;
  for (const v1::Client& client : answer.clients())
    clients.insert(client.pid());
  return FindUnscheduled(clients, answer.left_out() == 0);
}

}  // namespace xschedd::ctl
