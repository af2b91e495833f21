// The shim that belongs to this xschedctl. Thread rule: looks at files and the environment; main thread.
#pragma once

#include <string>

#include "common/result.h"

namespace xschedd::ctl {

// `given`: --shim. If empty: $XSCHEDD_SHIM, else the shim beside this program or in its installation (preload.h).
Result<std::string> InstalledShim(const std::string& given);

}  // namespace xschedd::ctl
