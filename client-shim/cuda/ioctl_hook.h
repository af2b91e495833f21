// `ioctl`, intercepted so that the process's channel groups are known (channel_groups.h). libcuda calls it by its
// dynamic symbol.
//
// An ioctl that neither makes nor frees an object of NVIDIA's resource manager costs a comparison and a jump to the
// definition behind ours, another preload's or the C library's, with its three words unchanged: same result, same
// errno. That definition is looked up once, at the first call, which takes the loader's lock. The other ioctls are
// noted after they have returned. No cancellation point, no lock, no allocation. Thread rule: any thread, also in a
// signal handler.
#pragma once

#include "client-shim/cuda/channel_groups.h"

namespace xschedd::shim::cuda {

// The definition behind ours.
IoctlFunction RealIoctl();

}  // namespace xschedd::shim::cuda
