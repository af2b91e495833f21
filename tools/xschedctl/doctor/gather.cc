#include "tools/xschedctl/doctor/gather.h"

#include <gnu/libc-version.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "client-shim/core/interface.h"
#include "common/abi.h"
#include "common/runtime_dir.h"
#include "common/unix_socket.h"
#include "common/versions.h"
#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/doctor/gather_libraries.h"
#include "tools/xschedctl/doctor/gather_process.h"
#include "tools/xschedctl/doctor/gather_system.h"
#include "tools/xschedctl/file_text.h"

extern char** environ;

namespace xschedd::ctl {
namespace {

SocketFacts GatherSocket(const std::string& path) {
  SocketFacts facts;
  facts.path = path;
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    // In a folder that may not be entered, it may exist.
    facts.exists = facts.is_socket = errno == EACCES;
    facts.connect_error = errno;
    return facts;
  }
  facts.exists = true;
  facts.is_socket = S_ISSOCK(status.st_mode);
  facts.mode = status.st_mode & 07777;
  // Not blocking: a stopped daemon accepts nothing.
  const UniqueFd connection = ConnectUnix(path, SOCK_NONBLOCK);
  if (!connection.IsValid()) {
    facts.connect_error = errno;
    return facts;
  }
  ucred peer{};
  socklen_t length = sizeof peer;
  // A process that has no pid here is reported as pid 0: pid_namespaces(7).
  facts.is_outside = ::getsockopt(connection.Get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid == 0;
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
  // A client of another user is only counted, but has a session.
  facts->process->has_session = clients->clients_size() > 0 || clients->left_out() > 0;
}

}  // namespace

Facts Gather(const DoctorOptions& options) {
  Facts facts;
  facts.ctl_version = XSCHEDD_VERSION;
  facts.abi_version = abi::Newest().version;
  facts.layout_hash = abi::Newest().layout_hash;
  facts.interface_version = shim::kInterfaceVersion;
  GatherShim(options, &facts);  // first: it forks
  const std::string runtime_dir = RuntimeDir(options.runtime_dir);
  facts.client_socket = GatherSocket(ClientSocketPath(runtime_dir));
  facts.admin_socket = GatherSocket(AdminSocketPath(runtime_dir));
  GatherCaller(&facts);
  GatherRuntimes(options, &facts);
  GatherSoftwareGpu(&facts);
  GatherDeviceFiles(&facts);
  facts.kernel = GatherKernel();
  facts.service = GatherService();
  facts.preloaded_for_all = FileText("/etc/ld.so.preload");
  GlibcVersion& glibc = facts.glibc.emplace();
  std::sscanf(gnu_get_libc_version(), "%d.%d", &glibc.first, &glibc.second);
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
