#include "tools/xschedctl/unscheduled.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "common/gpu_users.h"
#include "tools/xschedctl/doctor/gather_process.h"
#include "tools/xschedctl/file_text.h"

namespace xschedd::ctl {
namespace {

namespace fs = std::filesystem;

std::string ReasonOf(const fs::path& process, std::uint64_t parent, const std::set<std::uint64_t>& clients) {
  // A forked process inherits its parent's open files without using them.
  if (clients.contains(parent)) return "child of pid " + std::to_string(parent);
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
  const GpuUsers gpu = FindGpuUsers(root);
  found.is_complete = gpu.is_complete;
  for (const std::uint64_t pid : gpu.hidden)
    if (!clients.contains(pid)) found.is_complete = false;
  for (const GpuUser& user : gpu.users) {
    if (clients.contains(user.pid)) continue;
    // It could be a client of another user, which the daemon did not list.
    if (user.is_hidden && !are_all_clients) {
      found.is_complete = false;
      continue;
    }
    const fs::path path = fs::path(root + "/proc") / std::to_string(user.pid);
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;
    std::string command = FileText(path / "comm");
    if (!command.empty() && command.back() == '\n') command.pop_back();
    found.processes.push_back({user.pid, status.st_uid, command, ReasonOf(path, user.parent, clients)});
  }
  return found;
}

UnscheduledProcesses FindUnscheduled(const v1::ListClientsResponse& answer) {
  std::set<std::uint64_t> clients;
  for (const v1::Client& client : answer.clients())
    clients.insert(client.pid());
  return FindUnscheduled(clients, answer.left_out() == 0);
}

}  // namespace xschedd::ctl
