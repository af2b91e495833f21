// Opens a library of xschedd in a child process, as the loader and the shim do, and tells what came of it. In a child,
// because a library that does not fit may end the process. Thread rule: before this process has threads.
#pragma once

#include <string>

#include "tools/xschedctl/doctor/facts.h"

namespace xschedd::ctl {

// libxschedd-client.so, with the flags that the shim uses (client-shim/stub/client.cc).
LoadFacts ProbeLibrary(const std::string& path);
// libxschedd-shim.so.
LoadFacts ProbeShim(const std::string& path);

}  // namespace xschedd::ctl
