// The specification with which container engines connect a container to xschedd (CDI, the Container Device Interface of
// the CNCF: podman, Docker, containerd, CRI-O): its "device" is only mounts and an environment variable. Thread rule:
// pure.
#pragma once

#include <string>

#include "common/result.h"

namespace xschedd::ctl {

// JSON of version 0.5.0, the newest that podman 4 and containerd 1.7 both read. `shim`: an absolute path, the same
// inside the container, because children inherit LD_PRELOAD. `runtime_dir`: the daemon's; its clients' folder is
// mounted as /run/xschedd, so that a re-created socket appears in the container and admin.sock does not. Fails on a
// path that cannot be preloaded.
Result<std::string> CdiSpecification(const std::string& shim, const std::string& runtime_dir);

}  // namespace xschedd::ctl
