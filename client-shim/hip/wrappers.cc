// The wrappers of all entry points, generated from entry_points.def: for each, one for callers of the symbol (exported
// under the runtime's own name, without a version node, so that references to any version bind to it) and one for the
// runtime's dispatch table.
//
// The launch path of a wrapper is: load a pointer, load a word, test it, jump to the real function with all arguments
// where they were. Only a non-zero word leads to the `Slow` function behind it.
//
// Rules of the slow functions: the real call is made by the calling thread, once, with the caller's arguments, and its
// result is returned unchanged. Calls of the runtime that the core makes come before the real call, or after one that
// succeeded: up to ROCm 6 every call overwrites what hipGetLastError returns, so a "not ready" of ours must be
// overwritten in turn, and a success of ours must not hide the caller's error.
// Thread rule: any thread.
#include "client-shim/core/interface.h"
#include "client-shim/hip/kernel_of.h"
#include "client-shim/hip/launch_key.h"
#include "client-shim/hip/other_runtimes.h"
#include "client-shim/hip/runtime.h"
#include "client-shim/hip/timed_launch.h"
#include "client-shim/hip/vendor.h"
#include "client-shim/stub/client.h"
#include "client-shim/stub/launch_path.h"
#include "client-shim/stub/submission.h"

namespace xschedd::shim {
namespace {

#define XS_SLOW [[gnu::noinline, gnu::cold]] static
#define XS_CALLER __builtin_return_address(0)

// The stream of this thread's last hipConfigureCall, for the hipLaunchByPtr that follows.
__thread Stream g_configured_stream __attribute__((tls_model("initial-exec")));

template <Route route>
bool HasTool() {
  return g_has_tool[route].load(std::memory_order_relaxed);
}

// Whether a call by symbol is one of a runtime that is not scheduled.
template <Route route>
bool IsOthers(const void* caller) {
  return route == kSymbols && HasOthers() && RealOfOther(caller, kEntry_hipLaunchKernel) != nullptr;
}

// The client if this call is the application's own and is to be looked at; starts the client on the way. The real
// functions are known afterwards.
template <Route route>
const ClientTable* ClientForWork(const void* caller = XS_CALLER) {
  if (route == kSymbols) ResolveSymbols(caller);
  if (g_depth != 0 || IsOthers<route>(caller)) return nullptr;
  return StartClient(&g_hip_front_end);
}

// The same for calls that are no reason to start a client.
template <Route route>
const ClientTable* ClientIfRunning(const void* caller = XS_CALLER) {
  if (route == kSymbols) ResolveSymbols(caller);
  if (g_depth != 0 || IsOthers<route>(caller)) return nullptr;
  return RunningClient(&g_hip_front_end);
}

// A process that calls HIP with no runtime loaded was linked against the shim itself.
template <Route route, typename Function>
Function RealOrAbsent(uint32_t entry, const void* caller = XS_CALLER) {
  if (route == kSymbols && HasOthers()) {
    if (void* other = RealOfOther(caller, entry)) return reinterpret_cast<Function>(other);
  }
  const auto real = Real<route, Function>(entry);
  static_assert(sizeof(Function) == sizeof(void*));
  if (real != nullptr) return real;
  return reinterpret_cast<Function>(reinterpret_cast<void*>(+[]() -> HipError { return kHipErrorNotSupported; }));
}

// clang-format off
#define XS_LIST(...) __VA_ARGS__
#define XS_KEY(name, args) LaunchKey(kEntry_##name, XS_LIST args)
#define XS_KERNEL(name, args) KernelOf(kEntry_##name, XS_LIST args)
#define XS_TIMED(name, args) TimedLaunch<route, kEntry_##name>::Call(submission.stop, XS_LIST args)
#define XS_REAL(name, params) RealOrAbsent<route, HipError (*) params>(kEntry_##name)

#define XS_CALL(name, params, args)                                       \
  [[gnu::always_inline]] static inline HipError Call params {             \
    if (IsOpen<route>()) [[likely]] {                                     \
      return Real<route, HipError (*) params>(kEntry_##name) args;        \
    }                                                                     \
    return Slow args;                                                     \
  }

#define XS_SUBMISSION(name, params, args, stream, drains, reads)                                \
  template <Route route> struct Wrap_##name {                                               \
    XS_SLOW HipError Slow params {                                                          \
      const ClientTable* client = ClientForWork<route>();                                   \
      const auto real = XS_REAL(name, params);                                              \
      if (client == nullptr) return real args;                                              \
      const Inside inside;                                                                  \
      Submission submission = MakeSubmission(stream, kEntry_##name, drains, reads, XS_CALLER); \
      submission.key = XS_KEY(name, args);                                                  \
      submission.kernel = XS_KERNEL(name, args);                                            \
      submission.may_time = !HasTool<route>() && TimedLaunch<route, kEntry_##name>::IsPossible args; \
      client->submit_begin(&submission);                                                    \
      const LaunchEvents events = EventsOf args;                                            \
      if (events.start != nullptr) client->event_destroyed(events.start);                   \
      if (events.stop != nullptr) client->event_destroyed(events.stop);                     \
      const HipError result = submission.stop == nullptr ? real args : XS_TIMED(name, args); \
      client->submit_end(&submission, result == kHipSuccess);                               \
      if (result == kHipSuccess && events.stop != nullptr && events.in_order) {             \
        client->event_recorded(events.stop, stream);                                        \
      }                                                                                     \
      return result;                                                                        \
    }                                                                                       \
    XS_CALL(name, params, args)                                                             \
  };

#define XS_SUBMIT(name, index, params, args, stream) \
  XS_SUBMISSION(name, params, args, stream, false, false)
#define XS_COPY(name, index, params, args, stream, proves) \
  XS_SUBMISSION(name, params, args, stream, proves, proves)
#define XS_READ(name, index, params, args, stream, reads) \
  XS_SUBMISSION(name, params, args, stream, false, reads)

// More streams than this in one call are launched all the same, the rest uncounted.
constexpr unsigned kMaxMulti = 16;

// More entries than devices are an error, which the runtime finds before it reads the list: it may not be that long.
inline bool MayReadList(const void* list, int64_t count) {
  return list != nullptr && count >= 0 && count <= DeviceCount();
}

#define XS_MULTI(name, index, params, args, list, count)                                                   \
  template <Route route> struct Wrap_##name {                                                              \
    XS_SLOW HipError Slow params {                                                                         \
      const ClientTable* client = ClientForWork<route>();                                                  \
      const auto real = XS_REAL(name, params);                                                             \
      if (client == nullptr) return real args;                                                             \
      const Inside inside;                                                                                 \
      if (!MayReadList(list, count)) return real args;                                                     \
      Submission submissions[kMaxMulti];                                                                   \
      unsigned used = 0;                                                                                   \
      for (; used < static_cast<unsigned>(count) && used < kMaxMulti; ++used) {                            \
        submissions[used] = MakeSubmission(list[used].stream, kEntry_##name, false, false, XS_CALLER); \
        submissions[used].key = ItemKey(kEntry_##name, list[used]);                                        \
        submissions[used].kernel = KernelOf(list[used]);                                                   \
        client->submit_begin(&submissions[used]);                                                          \
      }                                                                                                    \
      const HipError result = real args;                                                                   \
      while (used > 0) client->submit_end(&submissions[--used], result == kHipSuccess);             \
      return result;                                                                                       \
    }                                                                                                      \
    XS_CALL(name, params, args)                                                                            \
  };

#define XS_SYNC(name, index, params, args, scope, object)        \
  template <Route route> struct Wrap_##name {                    \
    XS_SLOW HipError Slow params {                               \
      const ClientTable* client = ClientIfRunning<route>();      \
      const auto real = XS_REAL(name, params);                   \
      if (client == nullptr) return real args;                   \
      const Inside inside;                                       \
      Sync sync;                                                 \
      client->sync_begin(&sync, SyncScope::scope, object);       \
      HipError result = real args;                               \
      while (SyncScope::scope == SyncScope::kQuery && result == kHipErrorNotReady && client->query_again(&sync)) { \
        result = real args;                                      \
      }                                                          \
      client->sync_end(&sync, result == kHipSuccess);            \
      return result;                                             \
    }                                                            \
    XS_CALL(name, params, args)                                  \
  };

// Streams are noted whether or not anything is gated at the moment: what was missed could not be learnt later.
#define XS_STREAM(name, index, params, args, out, priority_, flags_)                                  \
  template <Route route> struct Wrap_##name {                                                         \
    static HipError Call params {                                                                     \
      if (route == kSymbols) LookForOthers();                                                         \
      const ClientTable* client = ClientForWork<route>();                                             \
      const auto real = XS_REAL(name, params);                                                        \
      if (client == nullptr) return real args;                                                        \
      const Inside inside;                                                                            \
      const HipError result = real args;                                                              \
      if (result == kHipSuccess && out != nullptr) client->stream_created(*out, priority_, flags_);   \
      return result;                                                                                  \
    }                                                                                                 \
  };

#define XS_CUSTOM(name, index, params, args)
#define XS_LISTED(...)
#define XS_OTHER(...)

#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
// clang-format on

#include "client-shim/hip/custom_wrappers.inc"

}  // namespace
}  // namespace xschedd::shim

// ---- the exported symbols

using namespace xschedd::shim;

// clang-format off
#define XS_EACH(name, index, params, args)                                    \
  extern "C" __attribute__((visibility("default"))) HipError name params {  \
    return Wrap_##name<kSymbols>::Call args;                                \
  }
#include "client-shim/hip/entry_points_each.inc"
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
#undef XS_EACH

// ---- both sets by number

void* const xschedd::shim::kWrappers[kRoutes][kEntryCount] = {
#define XS_EACH(name, index, params, args) reinterpret_cast<void*>(&::name),
  {
#include "client-shim/hip/entry_points_each.inc"
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
  },
#undef XS_EACH
#define XS_EACH(name, index, params, args) reinterpret_cast<void*>(&Wrap_##name<kTable>::Call),
  {
#include "client-shim/hip/entry_points_each.inc"
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
  },
#undef XS_EACH
};
// clang-format on
