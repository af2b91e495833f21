#include "tools/xschedctl/doctor/gather.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <grp.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "client-shim/core/interface.h"
#include "common/abi.h"
#include "common/runtime_dir.h"
#include "common/unique_fd.h"
#include "common/versions.h"
#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/doctor/elf_file.h"
#include "tools/xschedctl/doctor/gather_process.h"
#include "tools/xschedctl/doctor/load_probe.h"
#include "tools/xschedctl/file_text.h"
#include "tools/xschedctl/preload.h"

extern char** environ;

namespace xschedd::ctl {
namespace {

namespace fs = std::filesystem;

constexpr char kGroup[] = "xschedd";

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> Split(const std::string& list, const char* separators) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at <= list.size()) {
    const std::size_t end = std::min(list.find_first_of(separators, at), list.size());
    if (end > at) parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

SocketFacts LookAtSocket(const std::string& path) {
  SocketFacts facts;
  facts.path = path;
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    // A folder that may not be entered hides whether it is there.
    facts.exists = facts.is_socket = errno == EACCES;
    facts.connect_error = errno;
    return facts;
  }
  facts.exists = true;
  facts.is_socket = S_ISSOCK(status.st_mode);
  facts.mode = status.st_mode & 07777;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    facts.connect_error = ENAMETOOLONG;
    return facts;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    facts.connect_error = errno;
  return facts;
}

void AskDaemon(const DoctorOptions& options, Facts* facts) {
  const auto may_connect = [](const SocketFacts& socket) { return socket.is_socket && socket.connect_error == 0; };
  if (!may_connect(facts->admin_socket) && !may_connect(facts->client_socket)) return;
  Outcome<AdminClient> client = AdminClient::Connect(options.runtime_dir);
  if (!client) {
    facts->daemon_error = client.error().error.what;
    return;
  }
  const auto version = client->Call(v1::GetVersionRequest());
  if (!version) {
    facts->daemon_error = version.error().error.what;
    return;
  }
  facts->daemon = DaemonFacts{version->version(), version->abi_version(), version->layout_hash(), false};
  const bool has_process = facts->process && facts->process->exists;
  v1::ListClientsRequest request;
  if (has_process) request.mutable_selector()->add_pid(facts->process->pid);
  const auto clients = client->Call(request);
  if (!clients) return;
  facts->daemon->observes_only = clients->observes_only();
  for (const v1::Device& device : clients->devices()) {
    if (device.clients() > 0) facts->used_devices.push_back(device.name() + ", " + device.pci_address());
  }
  for (const v1::Client& one : clients->clients()) {
    for (const v1::ClientDevice& device : one.devices()) {
      if (!device.slice().empty()) ++facts->slices[device.device() + ": " + device.slice()];
    }
  }
  if (!has_process) return;
  // A client of another user is not shown, but is one.
  facts->process->has_session = clients->clients_size() > 0 || clients->left_out() > 0;
}

void LookAtCaller(Facts* facts) {
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

void LookAtShim(const DoctorOptions& options, Facts* facts) {
  std::string given = options.shim;
  if (given.empty()) given = Variable(kShimVariable);
  // What this environment preloads goes before what is installed: that is what its programs get.
  for (const std::string& path : Split(Variable("LD_PRELOAD"), ": ")) {
    if (path.find('/') == std::string::npos) continue;
    if (::access(path.c_str(), R_OK) != 0) {
      facts->preloaded_missing.push_back(path);
    } else if (given.empty() && path.substr(path.rfind('/') + 1) == kShimName) {
      given = path;
    }
  }
  std::error_code ignored;
  const std::string self = fs::read_symlink("/proc/self/exe", ignored).string();
  const Result<std::string> found = FindShim(given, ShimCandidates(self, XSCHEDD_LIBRARY_DIR));
  if (!found) {
    facts->shim.reason = found.error().what;
    return;
  }
  facts->shim = ProbeShim(*found);
  if (const auto elf = ReadElf(*found)) facts->shim_needs = elf->needs;
  std::string library = Variable("XSCHEDD_CLIENT_LIB");
  if (library.empty()) library = found->substr(0, found->rfind('/') + 1) + "libxschedd-client.so";
  facts->library = ProbeLibrary(library);
  if (const auto elf = ReadElf(library)) facts->library_needs = elf->needs;
}

// Files in `dir` whose names begin so, each real file once.
void FindRuntimes(const std::string& dir, const char* prefix, const std::string& found_by, std::set<std::string>* seen,
                  std::vector<RuntimeFacts>* out) {
  std::error_code error;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) == 0) names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& path : names) {
    const std::string real = fs::canonical(path, error).string();
    if (error || !seen->insert(real).second) continue;
    const auto elf = ReadElf(real);
    if (!elf) continue;
    const bool registers = std::find(elf->imports.begin(), elf->imports.end(),
                                     "rocprofiler_register_library_api_table") != elf->imports.end();
    out->push_back({path, found_by, registers});
  }
}

// The folders of the loader's cache: those that `ldconfig -p` would name. Its text form is read, not its file.
std::vector<std::string> CacheFolders() {
  std::set<std::string> folders;
  FILE* const out = ::popen("PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null", "re");
  if (out == nullptr) return {};
  char line[4096];
  while (std::fgets(line, sizeof line, out) != nullptr) {
    const std::string text(line);
    const auto arrow = text.find("=> ");
    if (arrow == std::string::npos || text.find("x86-64") == std::string::npos) continue;
    const std::string path = text.substr(arrow + 3, text.find('\n') - arrow - 3);
    folders.insert(path.substr(0, path.rfind('/')));
  }
  ::pclose(out);
  return {folders.begin(), folders.end()};
}

void LookForRuntimes(const DoctorOptions& options, Facts* facts) {
  constexpr char kHip[] = "libamdhip64.so";
  constexpr char kCuda[] = "libcuda.so";
  std::set<std::string> seen;
  if (!options.hip.empty()) {
    const fs::path path(options.hip);
    FindRuntimes(path.parent_path().string(), path.filename().c_str(), "as given", &seen, &facts->hip);
  }
  const auto look = [&](const std::string& dir, const std::string& found_by) {
    FindRuntimes(dir, kHip, found_by, &seen, &facts->hip);
    FindRuntimes(dir, kCuda, found_by, &seen, &facts->cuda);
  };
  for (const std::string& dir : Split(Variable("LD_LIBRARY_PATH"), ":;"))
    look(dir, "LD_LIBRARY_PATH");
  for (const std::string& dir : CacheFolders())
    look(dir, "the loader's cache");
  const std::string rocm = Variable("ROCM_PATH");
  look((rocm.empty() ? "/opt/rocm" : rocm) + "/lib", rocm.empty() ? "/opt/rocm" : "ROCM_PATH");
}

void LookForSoftwareGpu(Facts* facts) {
  for (const std::string& dir : Split(Variable("LD_LIBRARY_PATH"), ":;")) {
    const std::string path = dir + "/libhsa-runtime64.so.1";
    if (::access(path.c_str(), R_OK) != 0) continue;
    if (IsSoftwareGpu(path)) facts->software_gpu = path;
    return;  // the first one is what a program gets
  }
}

DeviceFileFacts Open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return {path, fd.IsValid() ? 0 : errno};
}

void LookForDevices(Facts* facts) {
  if (::access("/dev/kfd", F_OK) == 0) facts->amd_devices.push_back(Open("/dev/kfd"));
  std::error_code error;
  std::vector<std::string> nodes;
  // Render nodes are of any vendor's cards; without /dev/kfd they are no concern of ours.
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

KernelFacts LookAtKernel() {
  KernelFacts facts;
  utsname name{};
  if (::uname(&name) == 0) facts.release = name.release;
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  facts.has_pidfd = pidfd.IsValid();
  const UniqueFd memory(::memfd_create("xschedctl-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.IsValid() || ::ftruncate(memory.Get(), 4096) != 0) return facts;
  facts.has_memfd_seals = ::fcntl(memory.Get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
  facts.has_future_write_seal = ::fcntl(memory.Get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
  return facts;
}

ServiceFacts LookAtService() {
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

}  // namespace

Facts Gather(const DoctorOptions& options) {
  Facts facts;
  facts.ctl_version = XSCHEDD_VERSION;
  facts.abi_version = abi::Newest().version;
  facts.layout_hash = abi::Newest().layout_hash;
  facts.interface_version = shim::kInterfaceVersion;
  LookAtShim(options, &facts);  // first: it forks
  const std::string runtime_dir = RuntimeDir(options.runtime_dir);
  facts.client_socket = LookAtSocket(ClientSocketPath(runtime_dir));
  facts.admin_socket = LookAtSocket(AdminSocketPath(runtime_dir));
  LookAtCaller(&facts);
  LookForRuntimes(options, &facts);
  LookForSoftwareGpu(&facts);
  LookForDevices(&facts);
  facts.kernel = LookAtKernel();
  facts.service = LookAtService();
  facts.preloaded_for_all = FileText("/etc/ld.so.preload");
  std::sscanf(gnu_get_libc_version(), "%d.%d", &facts.glibc.emplace().first, &facts.glibc->second);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    if (const auto equals = text.find('='); equals != std::string::npos) {
      facts.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  if (options.pid != 0) {
    facts.process = GatherProcess(options.pid, facts.shim.path, facts.client_socket.path);
    if (facts.process->is_readable) facts.environment = facts.process->environment;
  }
  if (!options.root.empty()) {
    facts.root = GatherRoot(options.root, facts.shim.path, facts.library.path, facts.client_socket.path);
  }
  AskDaemon(options, &facts);
  return facts;
}

}  // namespace xschedd::ctl
