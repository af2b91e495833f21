#include "client-shim/cuda/vendor.h"

#include <stdlib.h>
#include <string.h>

#include "client-shim/cuda/allocations.h"
#include "client-shim/cuda/channel_groups.h"
#include "client-shim/cuda/driver.h"
#include "client-shim/cuda/ioctl_hook.h"
#include "client-shim/stub/launch_path.h"
#include "client-shim/stub/pool_functions.h"

namespace xschedd::shim::cuda {
namespace {

// The driver's exports that this file calls. Unlike HIP's, they leave no error that a program could see: what
// cudaGetLastError returns is cudart's own.
struct Functions {
  Result (*driver_version)(int*);
  Result (*device_count)(int*);
  Result (*primary_state)(int, unsigned*, int*);
  Result (*context_device)(int*);
  Result (*get_current)(Handle*);
  Result (*push_current)(Handle);
  Result (*pop_current)(Handle*);
  Result (*context_of_green)(Handle*, Handle);  // cuCtxFromGreenCtx, from CUDA 12.4
  Result (*stream_context)(Stream, Handle*);
  Result (*stream_contexts)(Stream, Handle*, Handle*);  // cuStreamGetCtx_v2, from CUDA 12.5: also of green contexts
  Result (*pci_bus_id)(char*, int, int);
  Result (*device_name)(char*, int, int);
  Result (*attribute)(int*, int, int);
  Result (*uuid)(unsigned char*, int);  // cuDeviceGetUuid_v2, from CUDA 11.4
  Result (*is_capturing)(Stream, int*);
  Result (*exchange_capture_mode)(int*);
  Result (*stream_query)(Stream);
  Result (*event_create)(Event*, unsigned);
  Result (*event_destroy)(Event);
  Result (*event_record)(Event, Stream);
  Result (*event_query)(Event);
  Result (*event_elapsed)(float*, Event, Event);
  Result (*function_name)(const char**, Handle);  // cuFuncGetName and cuKernelGetName, from CUDA 12.3
  Result (*kernel_name)(const char**, Handle);
};
Functions g_cuda;
PoolFunctions g_pools;

constexpr int kMultiprocessorCount = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int kMpsEnabled = 133;          // CU_DEVICE_ATTRIBUTE_MPS_ENABLED; an older driver refuses it
constexpr unsigned kTimed = 0;            // CU_EVENT_DEFAULT: with a time stamp, waited for by spinning
constexpr int kMaxDevices = 64;

struct Marker {
  Event event;
  Handle context;  // the one that the event was made in
};

// By device: the context in which the program last used a default stream. The agent's thread has no context, and the
// handle of a default stream does not identify one.
std::atomic<Handle> g_default_context[kMaxDevices];

__thread int g_on_behalf_of __attribute__((tls_model("initial-exec"))) = -1;

template <typename Function>
void Find(Function* function, const char* name) {
  *function = reinterpret_cast<Function>(DriverSymbol(name));
}

bool IsDefault(Stream stream) {
  return reinterpret_cast<uintptr_t>(stream) <= kPerThreadStream;
}

// Runs `body` with `context` current, and restores the context before it.
template <typename Body>
bool InContext(Handle context, Body body) {
  if (context == nullptr) return false;
  if (CurrentContext() == context) return body();
  if (g_cuda.push_current == nullptr || g_cuda.pop_current == nullptr || g_cuda.push_current(context) != kSuccess) {
    return false;
  }
  const bool result = body();
  Handle popped = nullptr;
  (void)g_cuda.pop_current(&popped);
  return result;
}

Handle ContextOfStream(int device, Stream stream) {
  Handle context = nullptr;
  if (IsDefault(stream)) {
    context = CurrentContext();
    if (context != nullptr && DeviceOfContext(context) == device) return context;
    // relaxed: only a handle, which the driver checks.
    return device >= 0 && device < kMaxDevices ? g_default_context[device].load(std::memory_order_relaxed) : nullptr;
  }
  if (g_cuda.stream_context != nullptr && g_cuda.stream_context(stream, &context) == kSuccess) return context;
  Handle green = nullptr;
  const bool is_green = g_cuda.stream_contexts != nullptr && g_cuda.context_of_green != nullptr &&
                        g_cuda.stream_contexts(stream, &context, &green) == kSuccess && green != nullptr;
  return is_green && g_cuda.context_of_green(&context, green) == kSuccess ? context : nullptr;
}

bool PciAddress(int device, char* out, size_t size) {
  if (g_cuda.pci_bus_id == nullptr || g_cuda.pci_bus_id(out, static_cast<int>(size), device) != kSuccess) return false;
  for (char* c = out; *c != '\0'; ++c) {
    if (*c >= 'A' && *c <= 'F') *c = static_cast<char>(*c - 'A' + 'a');
  }
  return true;
}

bool DeviceName(int device, char* out, size_t size) {
  return g_cuda.device_name != nullptr && g_cuda.device_name(out, static_cast<int>(size), device) == kSuccess;
}

// Of `device`; 0: not known.
int Attribute(int which, int device) {
  int value = 0;
  return g_cuda.attribute != nullptr && g_cuda.attribute(&value, which, device) == kSuccess ? value : 0;
}

uint32_t ComputeUnits(int device) {
  const int count = Attribute(kMultiprocessorCount, device);
  return count > 0 ? static_cast<uint32_t>(count) : 0;
}

bool IsUnderMps(int device) {
  return Attribute(kMpsEnabled, device) > 0;
}

bool IsCapturing(void* stream) {
  // The legacy default stream cannot be captured, and asking about it during a capture is an error.
  const bool is_legacy = reinterpret_cast<uintptr_t>(stream) < kPerThreadStream;
  int status = 0;
  return !is_legacy && g_cuda.is_capturing != nullptr && g_cuda.is_capturing(stream, &status) == kSuccess &&
         status != 0;
}

// As seen with driver 580, a current context is needed to create an event, and to record one on a default stream.
// Recording on another stream, querying and measuring work on any thread. But an event can be recorded only on streams
// of the context that it was made in. So the event is created when the marker is first recorded.
void* CreateMarker(int) {
  return calloc(1, sizeof(Marker));
}

Event CreateEvent() {
  const auto create = []() -> void* {
    Event event = nullptr;
    return g_cuda.event_create(&event, kTimed) == kSuccess ? event : nullptr;
  };
  return g_past_events.MakeApart(create, [](Event event) { (void)g_cuda.event_destroy(event); });
}

bool RecordMarker(int device, void* marker, void* stream) {
  auto* const m = static_cast<Marker*>(marker);
  const Handle context = ContextOfStream(device, stream);
  return InContext(context, [&] {
    if (m->event != nullptr && m->context != context) {
      // The event still exists: when a context is destroyed, the core drops all markers of its device.
      (void)g_cuda.event_destroy(m->event);
      m->event = nullptr;
    }
    if (m->event == nullptr) m->event = CreateEvent();
    if (m->event == nullptr) return false;
    m->context = context;
    return g_cuda.event_record(m->event, stream) == kSuccess;
  });
}

MarkerState QueryMarker(void* marker) {
  const auto* const m = static_cast<const Marker*>(marker);
  const Result result = m->event != nullptr ? g_cuda.event_query(m->event) : kErrorNotSupported;
  if (result == kSuccess) return MarkerState::kDone;
  return result == kErrorNotReady ? MarkerState::kPending : MarkerState::kBroken;
}

MarkerState QueryStream(int device, void* stream) {
  Result result = kErrorNotSupported;
  (void)InContext(ContextOfStream(device, stream), [&] {
    result = g_cuda.stream_query(stream);
    return true;
  });
  if (result == kSuccess) return MarkerState::kDone;
  return result == kErrorNotReady ? MarkerState::kPending : MarkerState::kBroken;
}

bool ElapsedNs(void* from, void* to, int64_t* out) {
  const auto* const first = static_cast<const Marker*>(from);
  const auto* const second = static_cast<const Marker*>(to);
  float milliseconds = 0;
  if (first->event == nullptr || second->event == nullptr ||
      g_cuda.event_elapsed(&milliseconds, first->event, second->event) != kSuccess) {
    return false;
  }
  *out = static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
  return true;
}

void AdoptThread() {
  ++g_depth;
}

int ExchangeCaptureMode(int mode) {
  return g_cuda.exchange_capture_mode != nullptr && g_cuda.exchange_capture_mode(&mode) == kSuccess ? mode : -1;
}

// From CUDA 12.3 on. A launch may have a CUkernel in place of a CUfunction; each of the two calls refuses the other's
// handles.
const char* KernelName(const KernelRef& kernel, void*) {
  const char* name = nullptr;
  if (kernel.handle == nullptr) return nullptr;
  void* const handle = const_cast<void*>(kernel.handle);
  if (g_cuda.function_name != nullptr && g_cuda.function_name(&name, handle) == kSuccess) return name;
  if (g_cuda.kernel_name != nullptr && g_cuda.kernel_name(&name, handle) == kSuccess) return name;
  return nullptr;
}

SliceReport SetTimeSlice(uint32_t us) {
  return g_channel_groups.SetTimeSlice(us, RealIoctl());
}

uint64_t KeptByPools(int device) {
  bool all_answered = true;
  return g_pools.Kept(device, g_made_pools, &all_answered);
}

void TrimPools(int device) {
  (void)g_pools.Trim(device, g_made_pools);
}

// "CUDA 13.0": the version number is major * 1000 + minor * 10.
void FormatVersion(int version, char* out) {
  const int parts[] = {version / 1000, version / 10 % 100};
  memcpy(out, "CUDA ", 5);
  out += 5;
  for (const int part : parts) {
    if (part >= 10) *out++ = static_cast<char>('0' + part / 10 % 10);
    *out++ = static_cast<char>('0' + part % 10);
    *out++ = '.';
  }
  out[-1] = '\0';
}

}  // namespace

PastHandles g_past_events;
MadePools g_made_pools;

Handle CurrentContext() {
  Handle context = nullptr;
  return g_cuda.get_current != nullptr && g_cuda.get_current(&context) == kSuccess ? context : nullptr;
}

bool DeviceUuid(int device, char* out, size_t size) {
  constexpr char kPrefix[] = "GPU-";
  constexpr char kDigits[] = "0123456789abcdef";
  unsigned char bytes[16];
  if (size < sizeof kPrefix + 36 || g_cuda.uuid == nullptr || g_cuda.uuid(bytes, device) != kSuccess) return false;
  memcpy(out, kPrefix, sizeof kPrefix - 1);
  out += sizeof kPrefix - 1;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *out++ = '-';
    *out++ = kDigits[bytes[i] >> 4];
    *out++ = kDigits[bytes[i] & 15];
  }
  *out = '\0';
  return true;
}

int DeviceCount() {
  int count = 0;
  return g_cuda.device_count != nullptr && g_cuda.device_count(&count) == kSuccess ? count : 0;
}

bool IsPrimaryActive(int device) {
  unsigned flags = 0;
  int active = 1;
  return g_cuda.primary_state == nullptr || g_cuda.primary_state(device, &flags, &active) != kSuccess || active != 0;
}

int CurrentDevice() {
  if (g_on_behalf_of >= 0) return g_on_behalf_of;
  int device = -1;
  if (g_cuda.context_device == nullptr || g_cuda.context_device(&device) != kSuccess) return -1;
  if (device >= 0 && device < kMaxDevices) {
    g_default_context[device].store(CurrentContext(), std::memory_order_relaxed);
  }
  return device;
}

int DeviceOfContext(Handle context) {
  int device = -1;
  const bool is_known = InContext(
      context, [&] { return g_cuda.context_device != nullptr && g_cuda.context_device(&device) == kSuccess; });
  return is_known ? device : -1;
}

int DeviceOfStream(void* stream) {
  return DeviceOfContext(ContextOfStream(-1, stream));
}

OnBehalfOf::OnBehalfOf(int device) : before_(g_on_behalf_of) {
  if (device >= 0) g_on_behalf_of = device;
}
OnBehalfOf::~OnBehalfOf() {
  g_on_behalf_of = before_;
}

const Vendor* MakeVendor() {
  Find(&g_cuda.driver_version, "cuDriverGetVersion");
  Find(&g_cuda.device_count, "cuDeviceGetCount");
  Find(&g_cuda.primary_state, "cuDevicePrimaryCtxGetState");
  Find(&g_cuda.context_device, "cuCtxGetDevice");
  Find(&g_cuda.get_current, "cuCtxGetCurrent");
  Find(&g_cuda.push_current, "cuCtxPushCurrent_v2");
  Find(&g_cuda.pop_current, "cuCtxPopCurrent_v2");
  Find(&g_cuda.context_of_green, "cuCtxFromGreenCtx");
  Find(&g_cuda.stream_context, "cuStreamGetCtx");
  Find(&g_cuda.stream_contexts, "cuStreamGetCtx_v2");
  Find(&g_cuda.pci_bus_id, "cuDeviceGetPCIBusId");
  Find(&g_cuda.device_name, "cuDeviceGetName");
  Find(&g_cuda.attribute, "cuDeviceGetAttribute");
  Find(&g_cuda.uuid, "cuDeviceGetUuid_v2");
  Find(&g_cuda.is_capturing, "cuStreamIsCapturing");
  Find(&g_cuda.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  Find(&g_cuda.stream_query, "cuStreamQuery");
  Find(&g_cuda.event_create, "cuEventCreate");
  Find(&g_cuda.event_destroy, "cuEventDestroy_v2");
  Find(&g_cuda.event_record, "cuEventRecord");
  Find(&g_cuda.event_query, "cuEventQuery");
  Find(&g_cuda.event_elapsed, "cuEventElapsedTime");
  Find(&g_pools.default_pool, "cuDeviceGetDefaultMemPool");
  Find(&g_pools.current_pool, "cuDeviceGetMemPool");
  Find(&g_pools.attribute, "cuMemPoolGetAttribute");
  Find(&g_pools.trim, "cuMemPoolTrimTo");
  Find(&g_pools.graph_attribute, "cuDeviceGetGraphMemAttribute");
  Find(&g_pools.trim_graphs, "cuDeviceGraphMemTrim");
  Find(&g_cuda.function_name, "cuFuncGetName");
  Find(&g_cuda.kernel_name, "cuKernelGetName");

  static char runtime[32];
  int version = 0;
  if (g_cuda.driver_version == nullptr || g_cuda.driver_version(&version) != kSuccess) version = 0;
  FormatVersion(version, runtime);
  static const Vendor vendor = {
      .vendor = "nvidia",
      .runtime = runtime,
      .route = "symbols",
      .current_device = CurrentDevice,
      .device_of_stream = DeviceOfStream,
      .pci_address = PciAddress,
      .device_name = DeviceName,
      .compute_units = ComputeUnits,
      .is_capturing = IsCapturing,
      .create_marker = CreateMarker,
      .record_marker = RecordMarker,
      .query_marker = QueryMarker,
      .query_stream = QueryStream,
      .elapsed_ns = ElapsedNs,
      .next_stamp = nullptr,  // the driver reports only the times of events
      .device_uuid = DeviceUuid,
      .adopt_thread = AdoptThread,
      .exchange_capture_mode = ExchangeCaptureMode,
      .kernel_name = KernelName,
      .set_time_slice = SetTimeSlice,
      .set_queue_priority = nullptr,
      .kept_by_pools = KeptByPools,
      .trim_pools = TrimPools,
      .is_under_mps = IsUnderMps,
  };
  return &vendor;
}

}  // namespace xschedd::shim::cuda
