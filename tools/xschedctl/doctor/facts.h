// What `xschedctl doctor` has observed, before the checks draw conclusions. gather.h collects it; tests make their own.
// Empty strings and nullopt: not found, or not requested. Thread rule: values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace xschedd::ctl {

using GlibcVersion = std::pair<int, int>;  // 2, 31

struct SocketFacts {
  std::string path;
  bool exists = false;
  bool is_socket = false;
  unsigned mode = 0;
  int connect_error = 0;    // errno; 0: connected
  bool is_outside = false;  // who listens is in a pid namespace around this one: this is a container
};

struct DaemonFacts {
  std::string version;
  std::uint32_t abi_version = 0;
  std::uint64_t layout_hash = 0;
  bool observes_only = false;  // [daemon] enforce = false
};

// A library that was opened in a child process.
struct LoadFacts {
  std::string path;
  bool is_loaded = false;
  std::string reason;           // the loader's error, or the signal that ended the child
  std::string version;          // xschedd's, as the library reports
  std::uint32_t interface = 0;  // of the client library
};

struct RuntimeFacts {
  std::string path;
  std::string found_by;    // "the loader's cache", "LD_LIBRARY_PATH", ...
  bool registers = false;  // imports rocprofiler_register_library_api_table
};

struct DeviceFileFacts {
  std::string path;
  int open_error = 0;  // errno; 0: it can be opened for reading and writing
};

struct KernelFacts {
  std::string release;
  bool has_pidfd = false;
  bool has_peer_pidfd = false;
  bool has_memfd_seals = false;
  bool has_future_write_seal = false;
};

// What systemd reports about xschedd.service.
struct ServiceFacts {
  bool has_manager = false;  // systemd runs here
  bool is_known = false;     // it has the unit
  std::string active;        // "active", "failed", ...
  std::string sub;           // "running", "auto-restart", ...
  std::string enabled;       // "enabled", "disabled", ...
  std::string watchdog;      // "30s"; "0" or "infinity": none
  std::uint64_t restarts = 0;
};

// The folder tree of a container, or of a process in one.
struct RootFacts {
  std::string dir;
  bool has_shim = false;
  bool has_library = false;
  bool has_client_socket = false;
  std::optional<GlibcVersion> glibc;
};

struct ProcessFacts {
  std::uint64_t pid = 0;
  bool exists = false;
  bool is_readable = false;  // its maps and environment
  std::string exe;
  bool is_static = false;
  bool is_privileged = false;  // set-uid, set-gid or with file capabilities: the loader ignores LD_PRELOAD
  bool other_root = false;     // of another mount namespace or root folder
  bool maps_shim = false;
  bool maps_library = false;
  std::string maps_runtime;       // its libamdhip64 or libcuda
  std::string maps_hsa;           // its libhsa-runtime64
  bool has_software_gpu = false;  // maps_hsa is the software GPU
  std::map<std::string, std::string> environment;
  std::optional<bool> has_session;  // nullopt: the daemon was not asked, or did not say
  RootFacts root;
};

struct Facts {
  std::string ctl_version;
  std::uint32_t abi_version = 0;
  std::uint64_t layout_hash = 0;
  std::uint32_t interface_version = 0;

  SocketFacts client_socket;
  SocketFacts admin_socket;
  std::optional<DaemonFacts> daemon;
  std::string daemon_error;  // why it did not answer although the socket could be connected
  bool is_root = false;
  bool has_group = false;    // there is a group xschedd
  bool is_in_group = false;  // in effect: the groups of this process
  bool is_member = false;    // in the group database; not in effect before the next login

  LoadFacts shim;  // path empty: not found, and `reason` says where it was looked for
  std::optional<GlibcVersion> shim_needs;
  LoadFacts library;
  std::optional<GlibcVersion> library_needs;
  std::optional<GlibcVersion> glibc;

  std::vector<RuntimeFacts> hip;
  std::vector<RuntimeFacts> cuda;
  std::vector<DeviceFileFacts> amd_devices;     // /dev/kfd, /dev/dri/renderD*
  std::vector<DeviceFileFacts> nvidia_devices;  // /dev/nvidiactl, /dev/nvidia0, ...
  std::vector<std::string> used_devices;        // names of devices on which the daemon has clients
  // The state of clients' time slices, as text, with how often each occurs: for the process asked about, or for all
  // clients.
  std::map<std::string, std::uint64_t> slices;
  std::string software_gpu;  // path of its libhsa-runtime64, if a program here would load that
  KernelFacts kernel;
  ServiceFacts service;
  std::string preloaded_for_all;  // content of /etc/ld.so.preload

  // This process's, or that of the process asked about.
  std::map<std::string, std::string> environment;
  std::vector<std::string> preloaded_missing;  // files in LD_PRELOAD with a path that do not exist
  std::optional<ProcessFacts> process;
  std::optional<RootFacts> root;
};

}  // namespace xschedd::ctl
