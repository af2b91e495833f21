// The shim that goes with this very program. Thread rule: looks at files and the environment; main thread.
#pragma once

#include <string>

#include "common/result.h"

namespace xschedd::ctl {

// This program's file; empty: /proc is not there.
std::string OwnPath();

// `given`: --shim. If it is empty $XSCHEDD_SHIM, else what lies beside this program or where it was installed to
// (preload.h).
Result<std::string> InstalledShim(const std::string& given);

}  // namespace xschedd::ctl
