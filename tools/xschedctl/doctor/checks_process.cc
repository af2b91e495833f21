// Whether one process is scheduled, and if not, why.
#include "tools/xschedctl/doctor/checks.h"

namespace xschedd::ctl {
namespace {

std::string Pid(const ProcessFacts& process) {
  return "pid " + std::to_string(process.pid);
}

std::string Variable(const ProcessFacts& process, const char* name) {
  const auto found = process.environment.find(name);
  return found != process.environment.end() ? found->second : std::string();
}

bool IsDisabled(const ProcessFacts& process) {
  const std::string value = Variable(process, "XSCHEDD_DISABLE");
  return !value.empty() && value != "0";
}

Finding WithoutShim(const Facts& facts, const ProcessFacts& process) {
  const std::string what = Pid(process) + " (" + process.exe + ") runs without the shim: ";
  if (process.is_static) {
    return Broken(what + "it is statically linked, and nothing can be preloaded", "link it dynamically");
  }
  if (process.is_privileged) {
    return Broken(what + "it is set-uid, set-gid or has capabilities, and the loader ignores LD_PRELOAD",
                  "start the program that uses the GPU without them");
  }
  if (Variable(process, "LD_PRELOAD").find("libxschedd-shim.so") == std::string::npos) {
    return Broken(what + "its LD_PRELOAD does not name it", "start it by xschedctl run, or set LD_PRELOAD");
  }
  if (!process.root.has_shim) {
    return Broken(what + "the shim does not exist in its container (" + facts.shim.path + ")",
                  "bind-mount its folder to the same path in the container");
  }
  if (process.root.glibc && facts.shim_needs && *process.root.glibc < *facts.shim_needs) {
    return Broken(what + "its glibc is " + Text(process.root.glibc) + ", and the shim needs " + Text(facts.shim_needs),
                  "use a newer image");
  }
  return Broken(what + "the loader could not load the file that LD_PRELOAD names",
                "the program's standard error says why");
}

}  // namespace

Findings CheckProcess(const Facts& facts) {
  if (!facts.process) return {};
  const ProcessFacts& process = *facts.process;
  if (!process.exists) return {Broken("there is no " + Pid(process), "look for it with ps")};
  if (!process.is_readable) {
    return {
        Warning("the mappings of " + Pid(process) + " cannot be read", "run xschedctl doctor as its user or as root")};
  }
  if (!process.maps_shim) return {WithoutShim(facts, process)};
  if (IsDisabled(process)) {
    return {Broken(Pid(process) + " has the shim, and XSCHEDD_DISABLE=" + Variable(process, "XSCHEDD_DISABLE"),
                   "start it without that variable")};
  }
  if (process.maps_library) return {Ok(Pid(process) + " has the shim and its private library")};
  if (process.maps_runtime.empty()) {
    return {Ok(Pid(process) + " has the shim, and has not loaded a GPU runtime")};
  }
  Finding finding = Warning(Pid(process) + " has the shim and " + process.maps_runtime +
                                ", and not the private library: it has submitted no GPU work yet, or could not load it",
                            "if it has submitted work, its standard error says why not");
  if (!process.root.has_library) {
    finding = Broken(Pid(process) + " has the shim, but the private library does not exist in its container",
                     "bind-mount the whole folder of the shim");
  } else if (process.root.glibc && facts.library_needs && *process.root.glibc < *facts.library_needs) {
    finding = Broken(Pid(process) + " runs unscheduled: its glibc is " + Text(process.root.glibc) +
                         ", and the private library needs " + Text(facts.library_needs),
                     "use a newer image, or build xschedd on a system as old");
  }
  return {finding};
}

Findings CheckSession(const Facts& facts) {
  if (!facts.process || !facts.process->exists || !facts.process->has_session) return {};
  const ProcessFacts& process = *facts.process;
  if (*process.has_session) return {Ok(Pid(process) + " has a session with the daemon")};
  if (!process.maps_library) return {};  // CheckProcess says why
  const std::string what = Pid(process) + " has no session with this daemon";
  if (!process.root.has_client_socket) {
    return {Broken(what + ": " + facts.client_socket.path + " does not exist in its container",
                   MountClientFolder(facts.client_socket.path) + ", or set XSCHEDD_RUNTIME_DIR")};
  }
  return {Broken(what,
                 "see journalctl -u xschedd for a refusal, and the program's standard error with "
                 "XSCHEDD_LOG=info")};
}

}  // namespace xschedd::ctl
