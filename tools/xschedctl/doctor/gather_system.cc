#include "tools/xschedctl/doctor/gather_system.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/shared_memory.h"
#include "common/unique_fd.h"
#include "tools/xschedctl/file_text.h"

namespace xschedd::ctl {
namespace {

namespace fs = std::filesystem;

constexpr char kGroup[] = "xschedd";

DeviceFileFacts Open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return {path, fd.IsValid() ? 0 : errno};
}

}  // namespace

void GatherCaller(Facts* facts) {
  facts->is_root = ::geteuid() == 0;
  const group* const wanted = ::getgrnam(kGroup);
  if (wanted == nullptr) return;
  facts->has_group = true;
  const gid_t gid = wanted->gr_gid;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  facts->is_in_group = ::getegid() == gid || std::find(groups.begin(), groups.end(), gid) != groups.end();
  const passwd* const self = ::getpwuid(::geteuid());
  for (char** member = wanted->gr_mem; self != nullptr && *member != nullptr; ++member)
    facts->is_member |= std::strcmp(*member, self->pw_name) == 0;
  facts->is_member &= !facts->is_in_group;
}

void GatherDeviceFiles(Facts* facts) {
  if (::access("/dev/kfd", F_OK) == 0) facts->amd_devices.push_back(Open("/dev/kfd"));
  std::error_code error;
  std::vector<std::string> nodes;
  // Render nodes belong to cards of any vendor; without /dev/kfd none of them is AMD's compute device.
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev/dri", error)) {
    if (!facts->amd_devices.empty() && entry.path().filename().string().rfind("renderD", 0) == 0) {
      nodes.push_back(entry.path().string());
    }
  }
  std::sort(nodes.begin(), nodes.end());
  for (const std::string& node : nodes)
    facts->amd_devices.push_back(Open(node));
  if (::access("/dev/nvidiactl", F_OK) == 0) facts->nvidia_devices.push_back(Open("/dev/nvidiactl"));
}

// SO_PEERPIDFD, which glibc 2.36 does not name yet.
bool HasPeerPidfd() {
  constexpr int kSoPeerPidfd = 77;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
  const UniqueFd one(pair[0]);
  const UniqueFd other(pair[1]);
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  const bool has = ::getsockopt(one.Get(), SOL_SOCKET, kSoPeerPidfd, &pidfd, &size) == 0;
  const UniqueFd closed(pidfd);
  return has;
}

KernelFacts GatherKernel() {
  KernelFacts facts;
  utsname name{};
  if (::uname(&name) == 0) facts.release = name.release;
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  facts.has_pidfd = pidfd.IsValid();
  facts.has_peer_pidfd = HasPeerPidfd();
  const UniqueFd memory(::memfd_create("xschedctl-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.IsValid() || ::ftruncate(memory.Get(), 4096) != 0) return facts;
  facts.has_memfd_seals = ::fcntl(memory.Get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
  facts.has_future_write_seal = CanSealWriting();
  return facts;
}

ServiceFacts GatherService() {
  ServiceFacts facts;
  facts.has_manager = ::access("/run/systemd/system", F_OK) == 0;
  if (!facts.has_manager) return facts;
  FILE* const out = ::popen(
      "systemctl show xschedd.service -p LoadState,ActiveState,SubState,UnitFileState,NRestarts,WatchdogUSec "
      "2>/dev/null",
      "re");
  if (out == nullptr) return facts;
  char line[512];
  while (std::fgets(line, sizeof line, out) != nullptr) {
    const std::string text(line, std::strcspn(line, "\n"));
    const auto equals = text.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = text.substr(0, equals);
    const std::string value = text.substr(equals + 1);
    if (name == "LoadState") facts.is_known = value == "loaded";
    if (name == "ActiveState") facts.active = value;
    if (name == "SubState") facts.sub = value;
    if (name == "UnitFileState") facts.enabled = value;
    if (name == "NRestarts") facts.restarts = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "WatchdogUSec") facts.watchdog = value;
  }
  ::pclose(out);
  return facts;
}

}  // namespace xschedd::ctl
