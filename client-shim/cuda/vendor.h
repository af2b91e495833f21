// CUDA as the core sees it (core/interface.h). A device is the driver's ordinal (CUdevice). A marker is an event with a
// time stamp, made in the context of the stream that it is recorded on.
// Thread rule: any thread; MakeVendor once, after ResolveDriver.
#pragma once

#include "client-shim/core/interface.h"
#include "client-shim/cuda/types.h"
#include "client-shim/stub/past_handles.h"

namespace xschedd::shim::cuda {

const Vendor* MakeVendor();

// The events that the program has destroyed.
extern PastHandles g_past_events;

// As nvidia-smi writes it: "GPU-" and five groups of hexadecimal digits. Of a MIG instance it is the instance's own.
// False: not known.
bool DeviceUuid(int device, char* out, size_t size);
// How many devices the driver has.
int DeviceCount();
// Whether the primary context of `device` exists; true if unknown.
bool IsPrimaryActive(int device);

// The calling thread's; null without one.
Handle CurrentContext();
// The device of the calling thread's current context, -1 without one.
int CurrentDevice();
// The device of `context`, -1 if there is none.
int DeviceOfContext(Handle context);

// The device of `stream`, which is not a default stream; -1: unknown.
int DeviceOfStream(void* stream);

// While it lives, CurrentDevice returns `device` on the calling thread; with -1, nothing changes.
class OnBehalfOf {
 public:
  explicit OnBehalfOf(int device);
  ~OnBehalfOf();
  OnBehalfOf(const OnBehalfOf&) = delete;
  OnBehalfOf& operator=(const OnBehalfOf&) = delete;

 private:
  int before_;
};

}  // namespace xschedd::shim::cuda
