// The wrappers of all entry points, generated from entry_points.def and exported under the driver's own names.
//
// The launch path of a wrapper is: load a pointer, load a word, test it, jump to the real function with all arguments
// where they were. Only a non-zero word leads to the `Slow` function behind it.
//
// Rules of the slow functions: the real call is made by the calling thread, once, with the caller's arguments, and its
// result is returned unchanged. Calls of the driver that the core makes leave no error behind.
// Thread rule: any thread.
#include "client-shim/core/interface.h"
#include "client-shim/cuda/driver.h"
#include "client-shim/cuda/kernel_of.h"
#include "client-shim/cuda/launch_key.h"
#include "client-shim/cuda/vendor.h"
#include "client-shim/stub/client.h"
#include "client-shim/stub/launch_path.h"
#include "client-shim/stub/submission.h"

namespace xschedd::shim::cuda {
namespace {

#define XS_SLOW [[gnu::noinline, gnu::cold]] static
#define XS_CALLER __builtin_return_address(0)

// The client if this call is the application's own and is to be looked at; starts the client on the way. The real
// functions are known afterwards.
const ClientTable* ClientForWork() {
  ResolveDriver();
  return g_depth == 0 ? StartClient(&g_front_end) : nullptr;
}

// The same for calls that are no reason to start a client.
const ClientTable* ClientIfRunning() {
  ResolveDriver();
  return g_depth == 0 ? RunningClient(&g_front_end) : nullptr;
}

// A process that calls CUDA with no driver loaded was linked against the shim itself.
template <typename Function>
Function RealOrAbsent(uint32_t entry) {
  const auto real = Real<Function>(entry);
  static_assert(sizeof(Function) == sizeof(void*));
  if (real != nullptr) return real;
  return reinterpret_cast<Function>(reinterpret_cast<void*>(+[]() -> Result { return kErrorNotSupported; }));
}

// clang-format off
#define XS_LIST(...) __VA_ARGS__
#define XS_REAL(name, params) RealOrAbsent<Result (*) params>(kEntry_##name)

// What a wrapper does while the word is zero, and otherwise.
#define XS_CALL(name, params, args)                              \
  [[gnu::always_inline]] static inline Result Call params {      \
    if (IsOpen(g_summary)) [[likely]] {                          \
      return Real<Result (*) params>(kEntry_##name) args;        \
    }                                                            \
    return Slow args;                                            \
  }

#define XS_SUBMISSION(name, params, args, stream, drains, reads)                                     \
  struct Wrap_##name {                                                                          \
    XS_SLOW Result Slow params {                                                                \
      const ClientTable* client = ClientForWork();                                              \
      const auto real = XS_REAL(name, params);                                                  \
      if (client == nullptr) return real args;                                                  \
      const Inside inside;                                                                      \
      Submission submission = MakeSubmission(stream, kEntry_##name, drains, reads, XS_CALLER);  \
      submission.key = LaunchKey(kEntry_##name, XS_LIST args);                                  \
      submission.kernel = KernelOf(kEntry_##name, XS_LIST args);                                \
      client->submit_begin(&submission);                                                        \
      const Result result = real args;                                                          \
      client->submit_end(&submission, result == kSuccess);                                      \
      return result;                                                                            \
    }                                                                                           \
    XS_CALL(name, params, args)                                                                 \
  };

#define XS_SUBMIT(name, since, params, args, stream) \
  XS_SUBMISSION(name, params, args, stream, false, false)
#define XS_COPY(name, since, params, args, stream, proves) \
  XS_SUBMISSION(name, params, args, stream, proves, proves)
#define XS_READ(name, since, params, args, stream, reads) \
  XS_SUBMISSION(name, params, args, stream, false, reads)

// More streams than this in one call are launched all the same, the rest uncounted.
constexpr unsigned kMaxMulti = 16;

// More entries than devices are an error, which the driver finds before it reads the list: it may not be that long.
inline bool MayReadList(const void* list, unsigned count) {
  return list != nullptr && count <= static_cast<unsigned>(DeviceCount());
}

#define XS_MULTI(name, since, params, args, list, count)                                                              \
  struct Wrap_##name {                                                                                                \
    XS_SLOW Result Slow params {                                                                                      \
      const ClientTable* client = ClientForWork();                                                                    \
      const auto real = XS_REAL(name, params);                                                                        \
      if (client == nullptr) return real args;                                                                        \
      const Inside inside;                                                                                            \
      if (!MayReadList(list, count)) return real args;                                                                \
      Submission submissions[kMaxMulti];                                                                              \
      unsigned used = 0;                                                                                              \
      for (; used < count && used < kMaxMulti; ++used) {                                                              \
        submissions[used] = MakeSubmission(list[used].stream, kEntry_##name, false, false, XS_CALLER);                       \
        submissions[used].key = ItemKey(kEntry_##name, list[used]);                                                   \
        submissions[used].kernel = KernelOf(list[used]);                                                              \
        client->submit_begin(&submissions[used]);                                                                     \
      }                                                                                                               \
      const Result result = real args;                                                                                \
      while (used > 0) client->submit_end(&submissions[--used], result == kSuccess);                                  \
      return result;                                                                                                  \
    }                                                                                                                 \
    XS_CALL(name, params, args)                                                                                       \
  };

#define XS_SYNC_OF(name, params, args, scope, object, device)   \
  struct Wrap_##name {                                          \
    XS_SLOW Result Slow params {                                \
      const ClientTable* client = ClientIfRunning();            \
      const auto real = XS_REAL(name, params);                  \
      if (client == nullptr) return real args;                  \
      const Inside inside;                                      \
      Sync sync;                                                \
      {                                                         \
        const OnBehalfOf other(device);                         \
        client->sync_begin(&sync, SyncScope::scope, object);    \
      }                                                         \
      Result result = real args;                                \
      while (SyncScope::scope == SyncScope::kQuery && result == kErrorNotReady && client->query_again(&sync)) { \
        result = real args;                                     \
      }                                                         \
      client->sync_end(&sync, result == kSuccess);              \
      return result;                                            \
    }                                                           \
    XS_CALL(name, params, args)                                 \
  };
#define XS_SYNC(name, since, params, args, scope, object) XS_SYNC_OF(name, params, args, scope, object, -1)
#define XS_SYNC_CONTEXT(name, since, params, args, context) \
  XS_SYNC_OF(name, params, args, kDevice, nullptr, DeviceOfContext(context))

// A call that is made first; if it succeeded and something is gated at the moment, the core is told.
#define XS_RECORD(name, since, params, args, event, stream)     \
  struct Wrap_##name {                                          \
    XS_SLOW Result Slow params {                                \
      const ClientTable* client = ClientIfRunning();            \
      const auto real = XS_REAL(name, params);                  \
      if (client == nullptr) return real args;                  \
      const Inside inside;                                      \
      const Result result = real args;                          \
      if (result == kSuccess) client->event_recorded(event, stream); \
      return result;                                            \
    }                                                           \
    XS_CALL(name, params, args)                                 \
  };

// From here on: told whether or not anything is gated at the moment, because what was missed could not be learnt later.

#define XS_EVENT_END(name, since, params, args, event)          \
  struct Wrap_##name {                                          \
    static Result Call params {                                 \
      const ClientTable* client = ClientIfRunning();            \
      const auto real = XS_REAL(name, params);                  \
      g_past_events.Add(event);                                 \
      if (client == nullptr) return real args;                  \
      const Inside inside;                                      \
      client->event_destroyed(event);                           \
      return real args;                                         \
    }                                                           \
  };

#define XS_STREAM_OF(name, params, args, out, priority, flags, device)                        \
  struct Wrap_##name {                                                                        \
    static Result Call params {                                                               \
      const ClientTable* client = ClientForWork();                                            \
      const auto real = XS_REAL(name, params);                                                \
      if (client == nullptr) return real args;                                                \
      const Inside inside;                                                                    \
      const Result result = real args;                                                        \
      if (result == kSuccess && out != nullptr) {                                             \
        const OnBehalfOf other(device);                                                       \
        client->stream_created(*out, priority, flags);                                        \
      }                                                                                       \
      return result;                                                                          \
    }                                                                                         \
  };
#define XS_STREAM(name, since, params, args, out, priority, flags) \
  XS_STREAM_OF(name, params, args, out, priority, flags, -1)
#define XS_STREAM_OF_CONTEXT(name, since, params, args, out, priority, flags) \
  XS_STREAM_OF(name, params, args, out, priority, flags, DeviceOfStream(*out))

#define XS_STREAM_END(name, since, params, args, stream)        \
  struct Wrap_##name {                                          \
    static Result Call params {                                 \
      const ClientTable* client = ClientIfRunning();            \
      const auto real = XS_REAL(name, params);                  \
      if (client == nullptr) return real args;                  \
      const Inside inside;                                      \
      client->stream_destroying(stream);                        \
      return real args;                                         \
    }                                                           \
  };

// A program that works on a device's default stream makes no stream there: this call is all that shows the device.
#define XS_CONTEXT(name, since, params, args)                                         \
  struct Wrap_##name {                                                                \
    static Result Call params {                                                       \
      ResolveDriver();                                                                \
      const Result result = XS_REAL(name, params) args;                               \
      if (result == kSuccess && g_depth == 0) NoteDevice(&g_front_end, CurrentDevice()); \
      return result;                                                                  \
    }                                                                                 \
  };

#define XS_CONTEXT_END(name, since, params, args, device_)      \
  struct Wrap_##name {                                          \
    static Result Call params {                                 \
      const ClientTable* client = ClientIfRunning();            \
      const auto real = XS_REAL(name, params);                  \
      if (client == nullptr) return real args;                  \
      const Inside inside;                                      \
      ForgetDevice(client, device_);                            \
      return real args;                                         \
    }                                                           \
  };

// A primary context goes with the last of those who have retained it. Forgotten before, as what is destroyed must not be
// touched; afterwards, where not all were seen.
#define XS_PRIMARY_RETAIN(name, since, params, args, device)    \
  struct Wrap_##name {                                          \
    static Result Call params {                                 \
      ResolveDriver();                                          \
      const Result result = XS_REAL(name, params) args;         \
      if (result == kSuccess) g_retained.Add(device);           \
      return result;                                            \
    }                                                           \
  };
#define XS_PRIMARY_RELEASE(name, since, params, args, device)   \
  struct Wrap_##name {                                          \
    static Result Call params {                                 \
      const ClientTable* client = ClientIfRunning();            \
      const auto real = XS_REAL(name, params);                  \
      const int retained = g_retained.Remove(device);           \
      const Inside inside;                                      \
      if (retained == 1 && client != nullptr) ForgetDevice(client, device); \
      const Result result = real args;                          \
      if (result != kSuccess && retained > 0) g_retained.Add(device); \
      const bool may_be_gone = result == kSuccess && retained != 1 && client != nullptr; \
      if (may_be_gone && !IsPrimaryActive(device)) ForgetDevice(client, device); \
      return result;                                            \
    }                                                           \
  };

// Before the real call: from then on a marker that is recorded elsewhere could break the capture. One that the wrong
// thread tries to end goes on.
#define XS_CAPTURE(name, since, params, args, stream)           \
  struct Wrap_##name {                                          \
    static Result Call params {                                 \
      const ClientTable* client = ClientForWork();              \
      const auto real = XS_REAL(name, params);                  \
      if (client == nullptr) return real args;                  \
      const Inside inside;                                      \
      client->capture_begun(stream);                            \
      const Result result = real args;                          \
      if (result != kSuccess) client->capture_ended(stream);    \
      return result;                                            \
    }                                                           \
  };

#define XS_CAPTURE_END(name, since, params, args, stream)       \
  struct Wrap_##name {                                          \
    static Result Call params {                                 \
      const ClientTable* client = ClientIfRunning();            \
      const auto real = XS_REAL(name, params);                  \
      if (client == nullptr) return real args;                  \
      const Inside inside;                                      \
      const Result result = real args;                          \
      if (result != kErrorWrongThread) client->capture_ended(stream); \
      return result;                                            \
    }                                                           \
  };

#define XS_ADDRESS(name, since, params, args)                                                     \
  struct Wrap_##name {                                                                            \
    static Result Call params {                                                                   \
      ResolveDriver();                                                                            \
      const Result result = XS_REAL(name, params) args;                                           \
      const bool is_found = result == kSuccess && symbol != nullptr && out != nullptr && *out != nullptr; \
      if (is_found && !IsInert() && !IsDisabled()) *out = WrapperOf(symbol, *out, version, flags); \
      return result;                                                                              \
    }                                                                                             \
  };

#define XS_LISTED(name, since, why)
// clang-format on

void ForgetDevice(const ClientTable* client, int device) {
  if (device < 0) return;
  const OnBehalfOf other(device);
  client->device_reset();
}

// How often the program has retained each device's primary context, as far as it was seen. Thread rule: any thread.
class Retained {
 public:
  // relaxed: a program that releases in one thread what another uses has put these in order.
  void Add(int device) {
    if (IsKept(device)) counts_[device].fetch_add(1, std::memory_order_relaxed);
  }
  // One fewer; returns how many there were. 0: more are released than were seen to be retained.
  int Remove(int device) {
    int count = IsKept(device) ? counts_[device].load(std::memory_order_relaxed) : 0;
    while (count > 0 && !counts_[device].compare_exchange_weak(count, count - 1, std::memory_order_relaxed)) {
    }
    return count;
  }

 private:
  static bool IsKept(int device) { return device >= 0 && device < static_cast<int>(abi::kMaxDevices); }
  std::atomic<int> counts_[abi::kMaxDevices] = {};
};
Retained g_retained;

#include "client-shim/cuda/entry_points.def"
#include "client-shim/cuda/entry_points_undef.inc"

}  // namespace
}  // namespace xschedd::shim::cuda

// ---- the exported symbols

using namespace xschedd::shim::cuda;

// clang-format off
#define XS_EACH(name, since, params, args)                                  \
  extern "C" __attribute__((visibility("default"))) Result name params {    \
    return Wrap_##name::Call args;                                          \
  }
#include "client-shim/cuda/entry_points_each.inc"
#include "client-shim/cuda/entry_points.def"
#include "client-shim/cuda/entry_points_undef.inc"
#undef XS_EACH

#define XS_EACH(name, since, params, args) reinterpret_cast<void*>(&::name),
void* const xschedd::shim::cuda::kWrappers[kEntryCount] = {
#include "client-shim/cuda/entry_points_each.inc"
#include "client-shim/cuda/entry_points.def"
#include "client-shim/cuda/entry_points_undef.inc"
};
#undef XS_EACH
// clang-format on
