// The specification by which container engines give a container its way to xschedd (CDI, the Container Device Interface
// of the CNCF: podman, Docker, containerd, CRI-O): a device that is no device, but mounts and an environment variable.
// Thread rule: pure.
#pragma once

#include <string>

#include "common/result.h"

namespace xschedd::ctl {

// JSON of version 0.5.0, the newest that podman 4 and containerd 1.7 both read. `shim`: absolute, and the same inside,
// because children inherit LD_PRELOAD. `runtime_dir`: the daemon's; inside, its clients' folder is /run/xschedd, so
// that a socket that is made again appears there and the administrators' does not. Fails on a path that cannot be
// preloaded.
Result<std::string> CdiSpecification(const std::string& shim, const std::string& runtime_dir);

}  // namespace xschedd::ctl
