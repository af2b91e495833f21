// The libraries that a program in this environment would load: the shim, its private library, the vendors' runtimes,
// the software GPU. Thread rule: main thread, before gRPC has threads.
#pragma once

#include "tools/xschedctl/doctor/facts.h"
#include "tools/xschedctl/doctor/gather.h"

namespace xschedd::ctl {

// Forks, to load the libraries.
void GatherShim(const DoctorOptions& options, Facts* facts);
void GatherRuntimes(const DoctorOptions& options, Facts* facts);
void GatherSoftwareGpu(Facts* facts);

}  // namespace xschedd::ctl
