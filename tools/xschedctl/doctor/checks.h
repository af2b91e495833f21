// The checks of `xschedctl doctor`: each looks at one thing and says what it found and what to do. A check that does
// not apply returns no finding. Thread rule: pure functions.
#pragma once

#include <span>

#include "tools/xschedctl/doctor/facts.h"
#include "tools/xschedctl/doctor/finding.h"

namespace xschedd::ctl {

Findings CheckClientSocket(const Facts& facts);
Findings CheckAdminSocket(const Facts& facts);
Findings CheckGroup(const Facts& facts);
Findings CheckService(const Facts& facts);
Findings CheckVersions(const Facts& facts);
Findings CheckEnforcing(const Facts& facts);
Findings CheckShim(const Facts& facts);
Findings CheckLibrary(const Facts& facts);
Findings CheckRuntimes(const Facts& facts);
Findings CheckDevices(const Facts& facts);
Findings CheckSlices(const Facts& facts);
Findings CheckKernel(const Facts& facts);
Findings CheckEnvironment(const Facts& facts);
Findings CheckConflicts(const Facts& facts);
Findings CheckPreload(const Facts& facts);
Findings CheckRoot(const Facts& facts);
Findings CheckProcess(const Facts& facts);
Findings CheckSession(const Facts& facts);

struct Check {
  const char* name;
  Findings (*run)(const Facts& facts);
};
std::span<const Check> Checks();

// The remedy for a container that cannot reach the daemon of this client socket.
std::string MountClientFolder(const std::string& client_socket);

// "2.36"; "an unknown version".
std::string Text(const std::optional<GlibcVersion>& version);

}  // namespace xschedd::ctl
