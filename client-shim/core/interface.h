// The interface between the preloaded stub and the private client library: two tables of functions, exchanged once.
// Only the stub knows vendors' runtimes; everything else is in the library. Both are installed together. The version is
// checked all the same, because running processes keep an old stub across an upgrade.
//
// Thread rule: every function may be called from any thread, except where said. None throws or changes errno.
// The stub calls with cancellation disabled (Inside in stub/launch_path.h), because the library must not be unwound.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client-shim/include/xschedd.h"
#include "common/abi.h"

namespace xschedd::shim {

inline constexpr std::uint32_t kInterfaceVersion = 12;
inline constexpr char kStartSymbol[] = "xschedd_client_start";

// ---- stub → library ------------------------------------------------------------------------------------------------

enum class MarkerState { kDone, kPending, kBroken };

// When the device began and ended a kernel, in nanoseconds of the device's own time base.
struct Stamp {
  std::uint64_t start_ns;
  std::uint64_t end_ns;
};

// hipStreamCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED.
inline constexpr int kCaptureModeRelaxed = 2;

// The kernel of a launch of a single one: the host function by which the compiler's launch syntax names it, or a
// module's function.
enum class KernelKind : std::uint32_t { kNone, kHostFunction, kModuleFunction };
struct KernelRef {
  KernelKind kind = KernelKind::kNone;
  const void* handle = nullptr;
};

// The result of setting a time slice.
struct SliceReport {
  std::uint32_t groups;    // channel groups of this process; 0: none is known, so no slice can be set
  std::uint32_t in_force;  // of these, those that have the slice, as read back from the driver
  bool operator==(const SliceReport&) const = default;
};

// Which priority all hardware queues of the process are to have; kProgram: each what the program asked for.
enum class QueuePriority : std::uint32_t { kProgram, kLow, kHigh };
// The result of setting it.
struct QueuePriorityReport {
  std::uint32_t queues;    // of this process that are known
  std::uint32_t in_force;  // of these, those that have it
  bool operator==(const QueuePriorityReport&) const = default;
};

// A vendor's runtime, as the core needs it. A marker is an event with a time stamp. Streams and markers are the
// runtime's own handles; a device is the client's own ordinal. Every function may fail (-1, false, null, kBroken).
// These call the runtime: never with a lock of the core held, and never on a stream that is being captured.
struct Vendor {
  const char* vendor;   // "amd"
  const char* runtime;  // "HIP 5.2.21153"
  const char* route;    // "dispatch table" or "symbols"
  int (*current_device)();
  int (*device_of_stream)(void* stream);  // for a stream that the core did not see being made
  bool (*pci_address)(int device, char* out, std::size_t size);
  bool (*device_name)(int device, char* out, std::size_t size);
  std::uint32_t (*compute_units)(int device);
  bool (*is_capturing)(void* stream);
  void* (*create_marker)(int device);
  bool (*record_marker)(int device, void* marker, void* stream);
  MarkerState (*query_marker)(void* marker);
  MarkerState (*query_stream)(int device,
                              void* stream);  // whether all its work is done; not per-thread default streams
  bool (*elapsed_ns)(void* from, void* to, std::int64_t* out);  // both done; negative if `to` came before `from`
  // The next stamp of a kernel that the runtime has read, on any of its threads, since `cursor`, which starts at 0 and
  // is advanced. False: none. Not a call of the runtime, so it may be made under a lock.
  bool (*next_stamp)(std::uint64_t* cursor, Stamp* out);
  bool (*device_uuid)(int device, char* out, std::size_t size);
  // The calling thread belongs to the library: its calls are never gated.
  void (*adopt_thread)();
  // Sets the calling thread's capture mode and returns the one before; -1: the runtime has none
  // (hipThreadExchangeStreamCaptureMode).
  int (*exchange_capture_mode)(int mode);
  // The kernel's name in the runtime, with C++ names mangled. The string is the runtime's, and valid until its next
  // call. `stream`: the one that the kernel is about to be launched on. Null: unknown. May be called during a capture.
  const char* (*kernel_name)(const KernelRef& kernel, void* stream);
  // Sets the time slice of this process on all its devices, µs; 0: what it was before the first call. Writes what
  // differs and reads it back. To be called repeatedly, because the runtime may set its own at any time. Not a call of
  // the runtime. One thread at a time; takes milliseconds. Null: the vendor has no such lever.
  SliceReport (*set_time_slice)(std::uint32_t us);
  // Sets the priority of the process's hardware queues, also of those that it makes later. Writes what differs, so
  // that repeated calls change nothing but count again. Null: the vendor has no such lever.
  QueuePriorityReport (*set_queue_priority)(QueuePriority wanted);
  // Device memory that the runtime's pools keep on `device`, those of its graphs among them, whether it is handed out
  // or not; 0: none, or not known. Asked only where a limit is in force, and not while a stream is captured.
  std::uint64_t (*kept_by_pools)(int device);
  // Gives back to the device what of it is not handed out.
  void (*trim_pools)(int device);
  // Whether a server runs the process's kernels side by side with those of other processes (NVIDIA's MPS), on a device
  // whose driver gives processes turns. Null: the vendor has no such server.
  bool (*is_under_mps)(int device);
};

struct StubTable {
  std::uint32_t version;
  const Vendor* vendor;
  const char* const* entry_names;  // by entry number
  std::uint32_t entry_count;
  std::uint64_t devices_seen;  // bit per ordinal that was made current before the library was loaded
  // Points the launch path at a word; non-zero there means that the slow path must be taken. Null: nothing is
  // scheduled.
  void (*set_summary)(const abi::Word* word);
  int (*find_object)(void* address, void* found);  // the loader's _dl_find_object; null where it has none
  const char* group;                               // by xschedd_set_group; empty: none. Valid for good
};

// ---- library → stub ------------------------------------------------------------------------------------------------

// Lives on the stack of a wrapper from submit_begin to submit_end.
struct Submission {
  void* stream;         // null: the legacy default stream of the current device
  const void* caller;   // where the application called from
  std::uint32_t entry;  // entry number
  bool drains;          // success proves that all work of the stream before the call has finished
  bool reads;           // copies to the host, or drains: the call may wait for the stream's work
  bool may_time;        // the wrapper can launch with a stop event
  KernelRef kernel;     // what is launched, for rules by kernel name
  std::uint64_t key;    // what is launched: equal for launches that should take equally long; 0: unknown
  void* stop;           // out of submit_begin: the stop event to launch the kernel with; null: a plain launch
  alignas(std::uint64_t) std::byte core[120];  // the core's own
};

// kQuery, kEventQuery: the call does not wait. No marker is recorded before a query, because it would make the stream
// busy. kImplicit: the call may wait for devices, but proves nothing (hipFree). The streams are queried at its end.
enum class SyncScope : std::uint32_t { kDevice, kStream, kEvent, kQuery, kEventQuery, kImplicit };

struct Sync {
  alignas(std::uint64_t) std::byte core[72];
};

// An allocation of device memory, from memory_reserve to memory_keep or memory_return.
enum class MemoryKind : std::uint32_t { kPlain, kPooled, kPhysical };  // core/memory_account.h
struct MemoryRequest {
  MemoryKind kind = MemoryKind::kPlain;
  int device = -1;         // the ordinal; -1: that of `stream`
  void* stream = nullptr;  // null: the current device's
  std::uint64_t bytes = 0;
  const void* owner = nullptr;  // the CUDA context that it is made in
  bool is_captured = false;     // from memory_reserve: a capture is open somewhere, so the runtime is not to be called
};
// A free, from memory_freeing to memory_freed.
struct MemoryRelease {
  alignas(std::uint64_t) std::byte core[56];
};
// What a process is to see of a device. `limit_bytes` 0: what there is.
struct MemoryView {
  std::uint64_t limit_bytes;
  std::uint64_t used_bytes;
};

struct ClientTable {
  std::uint32_t version;
  // Waits at the gate and for the window. submit_end: `ok`, the real call succeeded.
  void (*submit_begin)(Submission* submission);
  void (*submit_end)(Submission* submission, bool ok);
  // Around a call whose success proves that what was submitted before it has finished; or with kImplicit may do so.
  void (*sync_begin)(Sync* sync, SyncScope scope, void* object);
  void (*sync_end)(Sync* sync, bool ok);
  // Between the two, after a kQuery that found unfinished work: whether that may only be a marker of ours behind work
  // that has finished. Then the query must be repeated.
  bool (*query_again)(const Sync* sync);
  void (*event_recorded)(void* event, void* stream);
  void (*event_destroyed)(void* event);
  void (*stream_created)(void* stream, int priority, unsigned flags);
  void (*stream_destroying)(void* stream);  // before the real call: nobody touches the stream afterwards
  void (*device_current)(int device);       // the calling thread now works on `device`
  void (*device_reset)();                   // all streams and markers of the current device are about to go
  void (*capture_begun)(void* stream);      // before the real call
  void (*capture_ended)(void* stream);
  // The process is exiting, and the runtime is about to be torn down: no more calls of it. Waits at most a few
  // milliseconds for one in progress.
  void (*exiting)();
  void (*forked)();  // in a child of fork: from now on nothing here touches the parent's session
  // Device memory. False: it would go above the limit, and the call is to fail as if the device was full.
  bool (*memory_reserve)(MemoryRequest* request);
  // The real call has succeeded and come to `bytes`; or it has failed.
  void (*memory_keep)(const MemoryRequest* request, std::uint64_t handle, std::uint64_t bytes);
  void (*memory_return)(const MemoryRequest* request);
  // Around a free; `is_physical`: of a handle of the virtual memory API.
  void (*memory_freeing)(MemoryRelease* release, std::uint64_t handle, bool is_physical);
  void (*memory_freed)(MemoryRelease* release, bool ok);
  // After calls that succeeded: one more handle to physical memory; a mapping of it; the end of mappings.
  void (*memory_retained)(std::uint64_t handle);
  void (*memory_mapped)(std::uint64_t at, std::uint64_t bytes, std::uint64_t handle);
  void (*memory_unmapped)(std::uint64_t at, std::uint64_t bytes);
  // All memory of a context has gone; null: of the device.
  void (*memory_gone)(int device, const void* owner);
  void (*memory_view)(int device, MemoryView* view);  // -1: the current device
  int (*set_priority)(int priority);
  int (*set_weight)(unsigned weight);
  int (*set_deadline)(std::uint64_t us);
  int (*set_stream_priority)(void* stream, int priority);
  int (*set_stream_weight)(void* stream, unsigned weight);
  int (*set_stream_deadline)(void* stream, std::uint64_t us);
  int (*hold)(int device, std::uint64_t max_us);
  int (*release)(int device);
  int (*hold_stream)(void* stream, std::uint64_t max_us);
  int (*release_stream)(void* stream);
  int (*schedule_streams)(bool on);
  int (*get_status)(xschedd_status* status);  // fills all fields; the stub handles `size`, here and in the next
  int (*get_device_status)(int device, xschedd_device_status* status);
};

// Describes the library without starting it, for `xschedctl doctor`. Exported as kAboutSymbol.
struct LibraryAbout {
  std::uint32_t interface_version;
  const char* release;  // "0.1.0"
};
inline constexpr char kAboutSymbol[] = "xschedd_client_about";

// The one function that the library exports. Tries to connect, for a bounded time. Returns null if the versions differ
// or memory has run out. Called once.
using StartFunction = const ClientTable* (*)(const StubTable*);

}  // namespace xschedd::shim
