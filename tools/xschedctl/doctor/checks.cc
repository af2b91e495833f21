#include "tools/xschedctl/doctor/checks.h"

#include "common/runtime_dir.h"

namespace xschedd::ctl {

std::string_view Name(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "unknown";
}

std::string Text(const std::optional<GlibcVersion>& version) {
  if (!version) return "an unknown version";
  return std::to_string(version->first) + "." + std::to_string(version->second);
}

std::string MountClientFolder(const std::string& client_socket) {
  const std::string folder = client_socket.substr(0, client_socket.rfind('/'));
  // Not the folder itself: admin.sock is in it.
  return "bind-mount " + ClientFolder(folder) + " as " + folder + " into it";
}

std::span<const Check> Checks() {
  static constexpr Check kChecks[] = {
      {"client socket", CheckClientSocket},
      {"admin socket", CheckAdminSocket},
      {"group", CheckGroup},
      {"service", CheckService},
      {"versions", CheckVersions},
      {"enforcement", CheckEnforcing},
      {"shim", CheckShim},
      {"private library", CheckLibrary},
      {"runtime", CheckRuntimes},
      {"device", CheckDevices},
      {"time slices", CheckSlices},
      {"kernel", CheckKernel},
      {"environment", CheckEnvironment},
      {"conflicts", CheckConflicts},
      {"preload", CheckPreload},
      {"root", CheckRoot},
      {"process", CheckProcess},
      {"session", CheckSession},
  };
  return kChecks;
}

}  // namespace xschedd::ctl
