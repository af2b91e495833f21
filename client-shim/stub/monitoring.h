// NVML, rocm_smi and amdsmi as a library of the program's own: what they say of a device's memory is, under a limit of
// device memory, what the runtime says (stub/allocation.h). Programs and frameworks size their pools by either.
//
// Only once the process works with its GPU: before, nobody knows which of its devices is which of theirs. Without a
// limit, and of devices that the process does not have, the library's answer stands. Nobody else sees any of it: the
// tools nvidia-smi, rocm-smi and amd-smi are processes of their own. Sources: nvml.h 12 and 13; rocm_smi.h and amdsmi.h
// of ROCm 6 and 7. Thread rule: any thread.
#pragma once

#include "client-shim/stub/exposed.h"

namespace xschedd::shim {

extern const Exposed kMonitoring;

}  // namespace xschedd::shim
