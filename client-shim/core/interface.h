// The interface between the preloaded stub and the private client library: two tables of functions, exchanged once.
// The stub holds everything that knows a vendor's runtime; the library holds everything else and knows no vendor. Both
// are installed together; the version is checked all the same, because a preload path outlives an upgrade.
//
// Thread rule: every function may be called from any thread, except where said. None throws or changes errno.
// The stub calls with cancellation disabled (stub/launch_path.h, Inside): nothing behind this table may be unwound.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client-shim/include/xschedd.h"
#include "common/abi.h"

namespace xschedd::shim {

inline constexpr std::uint32_t kInterfaceVersion = 10;
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

// What a launch launches, where it is one kernel: what the compiler's launch syntax calls it by, or a module's
// function.
enum class KernelKind : std::uint32_t { kNone, kHostFunction, kModuleFunction };
struct KernelRef {
  KernelKind kind = KernelKind::kNone;
  const void* handle = nullptr;
};

// What has become of a time slice that was set.
struct SliceReport {
  std::uint32_t groups;    // what of this process the lever works on; 0: nothing is known, so there is no lever here
  std::uint32_t in_force;  // of these, that have what was asked for: the driver was asked back
  bool operator==(const SliceReport&) const = default;
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
  MarkerState (*query_stream)(int device, void* stream);  // of all that it was given; not a thread's own default stream
  bool (*elapsed_ns)(void* from, void* to, std::int64_t* out);  // both done; negative if `to` came before `from`
  // The next stamp of a kernel that some thread of the runtime has read since `cursor`, which starts at 0 and is moved
  // on. False: none. No call of the runtime, so it may be made under a lock.
  bool (*next_stamp)(std::uint64_t* cursor, Stamp* out);
  bool (*device_uuid)(int device, char* out, std::size_t size);
  // The calling thread belongs to the library: what it calls is never gated.
  void (*adopt_thread)();
  // Sets the calling thread's capture mode and returns the one before; -1: the runtime has none
  // (hipThreadExchangeStreamCaptureMode).
  int (*exchange_capture_mode)(int mode);
  // The kernel's name as the runtime has it, C++ names mangled; the string is the runtime's and may be gone at the next
  // call of it. `stream`: what the kernel is about to be launched on. Null: not known. No part of a capture.
  const char* (*kernel_name)(const KernelRef& kernel, void* stream);
  // How long work of this process may have a device before another process's turn comes, µs; 0: as it was before the
  // first call. Of the process, on all its devices. Sets what differs and asks back; the runtime may set its own at any
  // time, so it is called again. No call of the runtime. One thread at a time; milliseconds. Null: the vendor has no
  // such lever. A lever of another kind (a queue's priority, a mask of compute units) is a function of its own.
  SliceReport (*set_time_slice)(std::uint32_t us);
  // Device memory that the runtime's pools keep on `device`, those of its graphs among them, whether it is handed out
  // or not; 0: none, or not known. Asked only where a limit is in force, and not while a stream is captured.
  std::uint64_t (*kept_by_pools)(int device);
  // Gives back to the device what of it is not handed out.
  void (*trim_pools)(int device);
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
  const char* group;                               // by xschedd_set_group; empty: none. Stays where it is
};

// ---- library → stub ------------------------------------------------------------------------------------------------

// Lives on the stack of a wrapper from submit_begin to submit_end.
struct Submission {
  void* stream;         // null: the legacy default stream of the current device
  const void* caller;   // where the application called from
  std::uint32_t entry;  // entry number
  bool drains;          // success proves that the stream has nothing left of what it had before the call
  bool reads;           // copies to the host, or drains: the call may wait for what the stream has
  bool may_time;        // the wrapper can launch with a stop event
  KernelRef kernel;     // what is launched, for rules that go by its name
  std::uint64_t key;    // what is launched: equal for launches that should take equally long; 0: not known
  void* stop;           // from submit_begin: an event to launch with, as the kernel's stop event; null: a plain launch
  alignas(std::uint64_t) std::byte core[112];  // the core's own
};

// kQuery, kEventQuery: what is asked, not waited for. Nothing is recorded on a stream before it is asked, because that
// would make it busy.
// kImplicit: the call may wait for devices, and promises nothing (hipFree). The streams are asked at its end.
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
  // Between the two, where a kQuery found unfinished work: whether that may be a marker of ours that was recorded a
  // moment ago, behind work that has finished. Then the question is to be asked again.
  bool (*query_again)(const Sync* sync);
  void (*event_recorded)(void* event, void* stream);
  void (*event_destroyed)(void* event);
  void (*stream_created)(void* stream, int priority, unsigned flags);
  void (*stream_destroying)(void* stream);  // before the real call: nobody touches the stream afterwards
  void (*device_current)(int device);       // the calling thread now works on `device`
  void (*device_reset)();                   // all streams and markers of the current device are about to go
  void (*capture_begun)(void* stream);      // before the real call
  void (*capture_ended)(void* stream);
  // The process is exiting: no call of the runtime any more, which is about to be torn down. Waits a few milliseconds
  // at most for one that is under way.
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
  int (*get_status)(xschedd_status* status);  // all of it; the size is the stub's affair, here and in the next
  int (*get_device_status)(int device, xschedd_device_status* status);
};

// What the library says of itself without being started, for `xschedctl doctor`. Exported as kAboutSymbol.
struct LibraryAbout {
  std::uint32_t interface_version;
  const char* release;  // "0.1.0"
};
inline constexpr char kAboutSymbol[] = "xschedd_client_about";

// The one function that the library exports. Connects if it can within a bounded time, and returns null only if the
// versions differ. Called once.
using StartFunction = const ClientTable* (*)(const StubTable*);

}  // namespace xschedd::shim
