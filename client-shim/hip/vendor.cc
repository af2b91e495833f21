#include "client-shim/hip/vendor.h"

#include <stdlib.h>
#include <string.h>

#include "client-shim/hip/allocations.h"
#include "client-shim/hip/hardware_queues.h"
#include "client-shim/hip/kernel_stamps.h"
#include "client-shim/hip/runtime.h"
#include "client-shim/stub/pool_functions.h"

namespace xschedd::shim::hip {
namespace {

// The runtime's exports that this file calls. If the dispatch table is patched, they lead to our own wrappers, which
// let them pass because of g_depth.
struct Functions {
  Result (*get_device)(int*);
  Result (*device_count)(int*);
  Result (*set_device)(int);
  Result (*stream_device)(Stream, int*);  // hipStreamGetDevice, from ROCm 5.6
  int (*stream_device_id)(Stream);        // hipGetStreamDeviceId, always there, not in the headers
  Result (*pci_bus_id)(char*, int, int);
  Result (*device_name)(char*, int, int);
  Result (*attribute)(int*, int, int);
  Result (*uuid)(char*, int);  // hipUUID is 16 characters; from ROCm 5.1
  Result (*is_capturing)(Stream, int*);
  Result (*exchange_capture_mode)(int*);
  Result (*stream_query)(Stream);
  Result (*event_create)(Event*);
  Result (*event_destroy)(Event);
  Result (*event_record)(Event, Stream);
  Result (*event_elapsed)(float*, Event, Event);
  Result (*get_last_error)();
  Result (*peek_last_error)();
  const char* (*host_function_name)(const void*, Stream);  // hipKernelNameRefByPtr
  const char* (*module_function_name)(Handle);             // hipKernelNameRef
};
Functions g_hip;
PoolFunctions g_pools;
bool g_errors_stay = false;  // written once, by MakeVendor

constexpr int kMultiprocessorCount = 63;  // hipDeviceAttributeMultiprocessorCount, the same from ROCm 4.5 on

template <typename Function>
void Find(Function* function, const char* name) {
  *function = reinterpret_cast<Function>(RuntimeSymbol(name));
}

// hipGetLastError must not return errors of ours to the program. Up to ROCm 6 every call overwrites the last error;
// ours do, too, but the program's own call follows. From ROCm 7 on only a failure overwrites it, and it stays until it
// is read. So after a failure of ours the error is read away. If the program's own error was there before, that is not
// done: no call could restore it.
class OwnCalls {
 public:
  OwnCalls() : is_ours_(!g_errors_stay || g_hip.peek_last_error == nullptr || g_hip.peek_last_error() == kSuccess) {}
  // After a call of ours that failed.
  void ClearError() const {
    if (is_ours_ && g_hip.get_last_error != nullptr) (void)g_hip.get_last_error();
  }

 private:
  const bool is_ours_;
};

int CurrentDevice() {
  int device = -1;
  return g_hip.get_device != nullptr && g_hip.get_device(&device) == kSuccess ? device : -1;
}

int DeviceOfStream(void* stream) {
  const OwnCalls calls;
  int device = -1;
  if (g_hip.stream_device != nullptr) {
    if (g_hip.stream_device(stream, &device) == kSuccess) return device;
    calls.ClearError();
    return -1;
  }
  return g_hip.stream_device_id != nullptr ? g_hip.stream_device_id(stream) : -1;
}

bool DeviceName(int device, char* out, size_t size) {
  return g_hip.device_name != nullptr && g_hip.device_name(out, static_cast<int>(size), device) == kSuccess;
}

uint32_t ComputeUnits(int device) {
  int count = 0;
  if (g_hip.attribute == nullptr || g_hip.attribute(&count, kMultiprocessorCount, device) != kSuccess) return 0;
  return count > 0 ? static_cast<uint32_t>(count) : 0;
}

bool IsCapturing(void* stream) {
  const OwnCalls calls;
  // The legacy default stream cannot be captured, and asking about it during a capture is an error.
  if (stream == nullptr || g_hip.is_capturing == nullptr) return false;
  int status = 0;
  if (g_hip.is_capturing(stream, &status) == kSuccess) return status != 0;
  calls.ClearError();
  return false;
}

// Runs `body` with `device` current. A marker belongs to the device that is current when it is made, and the null
// stream means the current device's.
template <typename Body>
bool OnDevice(int device, Body body) {
  const int current = CurrentDevice();
  if (current == device) return body();
  if (g_hip.set_device == nullptr || g_hip.set_device(device) != kSuccess) return false;
  const bool result = body();
  if (current >= 0) (void)g_hip.set_device(current);
  return result;
}

void* CreateMarker(int device) {
  const OwnCalls calls;
  const auto create = []() -> void* {
    Event event = nullptr;
    return g_hip.event_create(&event) == kSuccess ? event : nullptr;
  };
  const auto destroy = [](Event event) { (void)g_hip.event_destroy(event); };
  Event marker = nullptr;
  const bool made = g_hip.event_create != nullptr && g_hip.event_destroy != nullptr && OnDevice(device, [&] {
                      marker = g_past_events.MakeApart(create, destroy);
                      return marker != nullptr;
                    });
  if (!made) calls.ClearError();
  return made ? marker : nullptr;
}

bool RecordMarker(int device, void* marker, void* stream) {
  const OwnCalls calls;
  const bool recorded =
      g_hip.event_record != nullptr && OnDevice(device, [&] { return g_hip.event_record(marker, stream) == kSuccess; });
  if (!recorded) calls.ClearError();
  return recorded;
}

// Asks for the time from the marker to itself, which is not ready before the marker is. hipEventQuery also queries the
// stream: from ROCm 6 on it breaks the capture of a stream if the event was recorded before on a stream of the same
// capture (clr, ihipEventQuery; seen with 6.4.3).
MarkerState QueryMarker(void* marker) {
  const OwnCalls calls;
  float unused = 0;
  const Result result =
      g_hip.event_elapsed != nullptr ? g_hip.event_elapsed(&unused, marker, marker) : kErrorNotSupported;
  if (result == kSuccess) return MarkerState::kDone;
  if (result == kErrorNotReady) return MarkerState::kPending;
  calls.ClearError();
  return MarkerState::kBroken;
}

MarkerState QueryStream(int device, void* stream) {
  const OwnCalls calls;
  Result result = kErrorNotSupported;
  if (g_hip.stream_query != nullptr) {
    OnDevice(device, [&] {
      result = g_hip.stream_query(stream);
      return true;
    });
  }
  if (result == kSuccess) return MarkerState::kDone;
  calls.ClearError();
  return result == kErrorNotReady ? MarkerState::kPending : MarkerState::kBroken;
}

bool ElapsedNs(void* from, void* to, int64_t* out) {
  const OwnCalls calls;
  float milliseconds = 0;
  if (g_hip.event_elapsed == nullptr || g_hip.event_elapsed(&milliseconds, from, to) != kSuccess) {
    calls.ClearError();
    return false;
  }
  *out = static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
  return true;
}

// The 16 characters are the device's serial number as the driver writes it, in hexadecimal digits, without "GPU-".
bool DeviceUuid(int device, char* out, size_t size) {
  const OwnCalls calls;
  constexpr size_t kCharacters = 16;
  constexpr char kPrefix[] = "GPU-";
  char uuid[kCharacters] = {};
  if (size < sizeof kPrefix + kCharacters || g_hip.uuid == nullptr) return false;
  if (g_hip.uuid(uuid, device) != kSuccess) {
    calls.ClearError();
    return false;
  }
  memcpy(out, kPrefix, sizeof kPrefix - 1);
  char* end = out + sizeof kPrefix - 1;
  for (size_t i = 0; i < kCharacters && uuid[i] != '\0'; ++i) {
    const char c = uuid[i];
    const bool is_text = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    if (!is_text) return false;
    *end++ = c;
  }
  *end = '\0';
  return end != out + sizeof kPrefix - 1;
}

void AdoptThread() {
  ++g_depth;
}

int ExchangeCaptureMode(int mode) {
  return g_hip.exchange_capture_mode != nullptr && g_hip.exchange_capture_mode(&mode) == kSuccess ? mode : -1;
}

// Both are look-ups that set no error. The first one loads the kernel's code, which the launch that follows would do.
const char* KernelName(const KernelRef& kernel, void* stream) {
  switch (kernel.kind) {
    case KernelKind::kHostFunction:
      // Releases before 6.2 do not know the other handle of the legacy default stream.
      if (reinterpret_cast<uintptr_t>(stream) == kLegacyStream) stream = nullptr;
      return g_hip.host_function_name != nullptr ? g_hip.host_function_name(kernel.handle, stream) : nullptr;
    case KernelKind::kModuleFunction:
      return g_hip.module_function_name != nullptr && kernel.handle != nullptr
                 ? g_hip.module_function_name(const_cast<void*>(kernel.handle))
                 : nullptr;
    case KernelKind::kNone:
      break;
  }
  return nullptr;
}

uint64_t KeptByPools(int device) {
  const OwnCalls calls;
  bool all_answered = true;
  const uint64_t bytes = g_pools.Kept(device, g_made_pools, &all_answered);
  if (!all_answered) calls.ClearError();
  return bytes;
}

void TrimPools(int device) {
  const OwnCalls calls;
  if (!g_pools.Trim(device, g_made_pools)) calls.ClearError();
}

// "HIP 5.2.21153": the version number is major * 10^7 + minor * 10^5 + patch.
void FormatVersion(int version, char* out) {
  const auto put = [&out](int number) {
    char digits[12];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    while (count > 0)
      *out++ = digits[--count];
  };
  memcpy(out, "HIP ", 4);
  out += 4;
  put(version / 10000000);
  *out++ = '.';
  put(version / 100000 % 100);
  *out++ = '.';
  put(version % 100000);
  *out = '\0';
}

}  // namespace

PastHandles g_past_events;
MadePools g_made_pools;

bool PciAddress(int device, char* out, size_t size) {
  if (g_hip.pci_bus_id == nullptr || g_hip.pci_bus_id(out, static_cast<int>(size), device) != kSuccess) return false;
  for (char* c = out; *c != '\0'; ++c) {
    if (*c >= 'A' && *c <= 'F') *c = static_cast<char>(*c - 'A' + 'a');
  }
  return true;
}

int DeviceCount() {
  int count = 0;
  return g_hip.device_count != nullptr && g_hip.device_count(&count) == kSuccess ? count : 0;
}

const Vendor* MakeVendor() {
  Find(&g_hip.get_device, "hipGetDevice");
  Find(&g_hip.device_count, "hipGetDeviceCount");
  Find(&g_hip.set_device, "hipSetDevice");
  Find(&g_hip.stream_device, "hipStreamGetDevice");
  Find(&g_hip.stream_device_id, "hipGetStreamDeviceId");
  Find(&g_hip.pci_bus_id, "hipDeviceGetPCIBusId");
  Find(&g_hip.device_name, "hipDeviceGetName");
  Find(&g_hip.attribute, "hipDeviceGetAttribute");
  Find(&g_hip.uuid, "hipDeviceGetUuid");
  Find(&g_hip.is_capturing, "hipStreamIsCapturing");
  Find(&g_hip.exchange_capture_mode, "hipThreadExchangeStreamCaptureMode");
  Find(&g_hip.stream_query, "hipStreamQuery");
  Find(&g_hip.event_create, "hipEventCreate");
  Find(&g_hip.event_destroy, "hipEventDestroy");
  Find(&g_hip.event_record, "hipEventRecord");
  Find(&g_hip.event_elapsed, "hipEventElapsedTime");
  Find(&g_hip.get_last_error, "hipGetLastError");
  Find(&g_hip.peek_last_error, "hipPeekAtLastError");
  Find(&g_pools.default_pool, "hipDeviceGetDefaultMemPool");
  Find(&g_pools.current_pool, "hipDeviceGetMemPool");
  Find(&g_pools.attribute, "hipMemPoolGetAttribute");
  Find(&g_pools.trim, "hipMemPoolTrimTo");
  Find(&g_pools.graph_attribute, "hipDeviceGetGraphMemAttribute");
  Find(&g_pools.trim_graphs, "hipDeviceGraphMemTrim");
  g_errors_stay = RuntimeVersion() >= 70'000'000;
  Find(&g_hip.host_function_name, "hipKernelNameRefByPtr");
  Find(&g_hip.module_function_name, "hipKernelNameRef");

  static char runtime[32];
  FormatVersion(RuntimeVersion(), runtime);
  static const Vendor vendor = {"amd",
                                runtime,
                                IsTablePatched() ? "dispatch table" : "symbols",
                                CurrentDevice,
                                DeviceOfStream,
                                PciAddress,
                                DeviceName,
                                ComputeUnits,
                                IsCapturing,
                                CreateMarker,
                                RecordMarker,
                                QueryMarker,
                                QueryStream,
                                ElapsedNs,
                                NextKernelStamp,
                                DeviceUuid,
                                AdoptThread,
                                ExchangeCaptureMode,
                                KernelName,
                                nullptr,  // no time slices between processes that a process may set
                                SetQueuePriority,
                                KeptByPools,
                                TrimPools,
                                nullptr};  // processes' kernels run side by side without a server
  return &vendor;
}

}  // namespace xschedd::shim::hip
