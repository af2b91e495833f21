// The machine and the caller: device files, kernel, service manager, the caller's groups. Thread rule: main thread,
// before gRPC has threads.
#pragma once

#include "tools/xschedctl/doctor/facts.h"

namespace xschedd::ctl {

void GatherCaller(Facts* facts);
void GatherDeviceFiles(Facts* facts);
// Whether a process of NVIDIA's Multi-Process Service runs, as far as /proc shows.
KernelFacts GatherKernel();
ServiceFacts GatherService();

}  // namespace xschedd::ctl
