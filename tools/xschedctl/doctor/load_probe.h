// Opens a library of xschedd in a child process, as the loader and the shim do, and returns the outcome. In a child
// process, because an incompatible library may end it. Thread rule: before this process has threads.
#pragma once

#include <string>

#include "tools/xschedctl/doctor/facts.h"

namespace xschedd::ctl {

// libxschedd-client.so, with the flags that the shim uses (client-shim/stub/client.cc).
LoadFacts ProbeLibrary(const std::string& path);
// libxschedd-shim.so.
LoadFacts ProbeShim(const std::string& path);

}  // namespace xschedd::ctl
