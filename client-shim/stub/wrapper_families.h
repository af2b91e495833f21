// What the wrappers of entry points do, for all vendors.
//
// Each line of a vendor's entry_points.def becomes a Row (wrapper_rows.inc): its number, its type, and functions of its
// arguments. A Way is a trait: how a vendor's calls come in, and what is different about them (hip/wrappers.cc has two,
// one for each route; cuda/wrappers.cc has one). A wrapper is a frame that calls a family:
//
//   Gated    a jump to the real function while the word is zero; otherwise calls the family
//   Always   always calls the family, because it could not learn later what it missed
//   Behind   makes the real call first; the family gets its result
//
// The launch path of a gated wrapper: load a pointer, load a word, test it, jump to the real function with all
// arguments in place. Only a non-zero word leads to the `Slow` function.
//
// Rules of the families: the real call is made by the calling thread, once, with the caller's arguments, and its result
// is returned unchanged. (A query that found only a marker of ours is repeated.) The core's own calls of the runtime
// come before the real call, or after one that succeeded: up to ROCm 6 every call overwrites what hipGetLastError
// returns, so a "not ready" of ours must be overwritten, and a success of ours must not hide the caller's error. CUDA's
// driver keeps no last error. Thread rule: any thread.
#pragma once

#include "client-shim/core/interface.h"
#include "client-shim/stub/allocation.h"
#include "client-shim/stub/client.h"
#include "client-shim/stub/front_end.h"
#include "client-shim/stub/launch_path.h"
#include "client-shim/stub/made_pools.h"
#include "client-shim/stub/past_handles.h"
#include "client-shim/stub/runtime_types.h"
#include "client-shim/stub/submission.h"

namespace xschedd::shim {

// ---- what a Way has
//
//   kFrontEnd                          the vendor's FrontEnd
//   IsOpen()                           launch path: the word is zero
//   Real<Function>(entry)              launch path: the real function
//   RealFor<Function>(entry, caller)   the real function for the code at `caller`; null: no runtime is loaded
//   Resolve(caller)                    finds the real functions, if that is not done yet
//   IsOurs(caller)                     the call is the application's own, and of the runtime that is scheduled
//   DetectOtherRuntimes()              checks whether another runtime has been loaded
//   MayTime<entry>(arguments...), Timed<entry>(stop, arguments...)
//                                      whether the same launch can be made with a stop event of ours, and that launch
//   TakenEvents                        the events that are among a launch's arguments
//   OnBehalfOf                         while it lives, the core takes this device for the current one
//   DeviceCount()                      of the runtime; 0: unknown
//   PastEvents()                       PastHandles of events
//   Pools()                            MadePools
//   MemoryOwner()                      what memory that is allocated now goes with: the current context, or null
//   OutOfMemory(may_call)              the runtime's result where a device is full, left behind as its last error, too,
//                                      where it has one and may be called

// The values of a row's device, beside ordinals.
inline constexpr int kUnknownDevice = -1;
inline constexpr int kCurrentDevice = -2;

// What a row says of its arguments.
struct Work {
  bool submits;
  Stream stream;
  bool drains;  // as in Submission
  bool reads;
};
template <typename Item>
struct List {
  const Item* items;
  int64_t count;
};
template <typename Item>
List(const Item*, int64_t) -> List<Item>;  // clang deduces none for an aggregate before release 17
struct MadeStream {
  Stream* stream;
  int priority;
  unsigned flags;
};
// Takes the arguments that a row does not use, so that the compiler does not warn of them.
template <typename... Arguments>
void IgnoreUnused(const Arguments&...) {}

// The real function or, without a runtime, one that fails. That happens in a program that was linked against the shim.
template <typename Way, typename Row>
typename Row::Function RealOrAbsent(const void* caller) {
  using Function = typename Row::Function;
  const auto real = Way::template RealFor<Function>(Row::kEntry, caller);
  static_assert(sizeof(Function) == sizeof(void*));
  if (real != nullptr) return real;
  return reinterpret_cast<Function>(reinterpret_cast<void*>(+[]() -> Result { return kErrorNotSupported; }));
}

// ---- the frames

// The client, if the call concerns it; started if the family is a reason for that. Afterwards the real functions are
// known.
template <typename Way, typename Family>
const ClientTable* FindClient(const void* caller) {
  Way::Resolve(caller);
  if (!Way::IsOurs(caller)) return nullptr;
  return Family::kStartsClient ? StartClient(Way::kFrontEnd) : RunningClient(Way::kFrontEnd);
}

// Lets the family handle a call, if the call is the application's own and there is a client; else makes the real call.
// `caller`: where the application called from.
template <typename Way, typename Row, typename Family, typename... Arguments>
[[gnu::always_inline]] inline Result Ask(const void* caller, Arguments... arguments) {
  Family::template Before<Way>(arguments...);
  const ClientTable* client = FindClient<Way, Family>(caller);
  const typename Row::Function real = RealOrAbsent<Way, Row>(caller);
  if (client == nullptr || !Family::template Concerns<Row>(arguments...)) return real(arguments...);
  const Inside inside;
  return Family::template Call<Way, Row>(client, real, caller, arguments...);
}

template <typename Way, typename Row, typename Family, typename Function = typename Row::Function>
struct Gated;
template <typename Way, typename Row, typename Family, typename... Parameters>
struct Gated<Way, Row, Family, Result (*)(Parameters...)> {
  // Reached by a jump, so that its return address is the application's.
  [[gnu::noinline, gnu::cold]] static Result Slow(Parameters... arguments) {
    return Ask<Way, Row, Family, Parameters...>(__builtin_return_address(0), arguments...);
  }
  [[gnu::always_inline]] static inline Result Call(Parameters... arguments) {
    if (Way::IsOpen()) [[likely]] {
      return Way::template Real<typename Row::Function>(Row::kEntry)(arguments...);
    }
    return Slow(arguments...);
  }
};

template <typename Way, typename Row, typename Family, typename Function = typename Row::Function>
struct Always;
template <typename Way, typename Row, typename Family, typename... Parameters>
struct Always<Way, Row, Family, Result (*)(Parameters...)> {
  static Result Call(Parameters... arguments) {
    return Ask<Way, Row, Family, Parameters...>(__builtin_return_address(0), arguments...);
  }
};

template <typename Way, typename Row, typename Family, typename Function = typename Row::Function>
struct Behind;
template <typename Way, typename Row, typename Family, typename... Parameters>
struct Behind<Way, Row, Family, Result (*)(Parameters...)> {
  static Result Call(Parameters... arguments) {
    const void* const caller = __builtin_return_address(0);
    Family::template Before<Way>(arguments...);
    Way::Resolve(caller);
    const Result result = RealOrAbsent<Way, Row>(caller)(arguments...);
    Family::template After<Way, Row>(result, caller, arguments...);
    return result;
  }
};

// ---- the families

struct Family {
  static constexpr bool kStartsClient = false;
  template <typename Way, typename... Arguments>
  static void Before(Arguments...) {}
  template <typename Row, typename... Arguments>
  static bool Concerns(Arguments...) {
    return true;
  }
};

struct Submitting : Family {
  static constexpr bool kStartsClient = true;
  template <typename Row, typename... Arguments>
  static bool Concerns(Arguments... arguments) {
    return Row::WorkOf(arguments...).submits;
  }
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void* caller,
                     Arguments... arguments) {
    const Work work = Row::WorkOf(arguments...);
    Submission submission = MakeSubmission(work.stream, Row::kEntry, work.drains, work.reads, caller);
    submission.key = Row::KeyOf(arguments...);
    submission.kernel = Row::LaunchedBy(arguments...);
    submission.may_time = Way::template MayTime<Row::kEntry>(arguments...);
    client->submit_begin(&submission);
    const typename Way::TakenEvents events(client, arguments...);
    const Result result = submission.stop == nullptr ? real(arguments...)
                                                     : Way::template Timed<Row::kEntry>(submission.stop, arguments...);
    client->submit_end(&submission, result == kSuccess);
    if (result == kSuccess) events.Recorded(client, work.stream);
    return result;
  }
};

struct SubmittingList : Family {
  static constexpr bool kStartsClient = true;
  // If a call launches on more streams than this, the rest is not counted.
  static constexpr unsigned kMaxSubmissions = 16;

  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void* caller,
                     Arguments... arguments) {
    const auto list = Row::ListOf(arguments...);
    // A count larger than the number of devices is an error, which the runtime finds before it reads the list. So the
    // list may be shorter than that.
    if (list.items == nullptr || list.count < 0 || list.count > Way::DeviceCount()) return real(arguments...);
    Submission submissions[kMaxSubmissions];
    unsigned used = 0;
    for (; used < list.count && used < kMaxSubmissions; ++used) {
      const auto& item = list.items[used];
      submissions[used] = MakeSubmission(item.stream, Row::kEntry, false, false, caller);
      submissions[used].key = Row::KeyOf(item);
      submissions[used].kernel = Row::LaunchedBy(item);
      client->submit_begin(&submissions[used]);
    }
    const Result result = real(arguments...);
    while (used > 0)
      client->submit_end(&submissions[--used], result == kSuccess);
    return result;
  }
};

struct Synchronising : Family {
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    Sync sync;
    {
      const typename Way::OnBehalfOf device(Row::DeviceOf(arguments...));
      client->sync_begin(&sync, Row::kScope, Row::ObjectOf(arguments...));
    }
    Result result = real(arguments...);
    while (Row::kScope == SyncScope::kQuery && result == kErrorNotReady && client->query_again(&sync))
      result = real(arguments...);
    client->sync_end(&sync, result == kSuccess);
    return result;
  }
};

struct RecordingEvent : Family {
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    const Result result = real(arguments...);
    if (result == kSuccess) client->event_recorded(Row::EventOf(arguments...), Row::StreamOf(arguments...));
    return result;
  }
};

struct DestroyingEvent : Family {
  // Even without a client: one that starts later must not get the handle for a marker.
  template <typename Way, typename... Arguments>
  static void Before(Event event, Arguments...) {
    Way::PastEvents().Add(event);
  }
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    client->event_destroyed(Row::EventOf(arguments...));
    return real(arguments...);
  }
};

struct MakingStream : Family {
  static constexpr bool kStartsClient = true;
  template <typename Way, typename... Arguments>
  static void Before(Arguments...) {
    Way::DetectOtherRuntimes();
  }
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    const Result result = real(arguments...);
    const MadeStream made = Row::MadeOf(arguments...);
    if (result == kSuccess && made.stream != nullptr) {
      const typename Way::OnBehalfOf device(Row::DeviceOf(arguments...));
      client->stream_created(*made.stream, made.priority, made.flags);
    }
    return result;
  }
};

struct DestroyingStream : Family {
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    client->stream_destroying(Row::StreamOf(arguments...));
    return real(arguments...);
  }
};

// A program that uses only a device's default stream makes no stream there. Only this call shows that it uses the
// device.
struct MakingCurrent : Family {
  template <typename Way, typename... Arguments>
  static void Before(Arguments...) {
    Way::DetectOtherRuntimes();
  }
  template <typename Way, typename Row, typename... Arguments>
  static void After(Result result, const void* caller, Arguments... arguments) {
    if (result == kSuccess && Way::IsOurs(caller)) NoteDevice(Way::kFrontEnd, Row::DeviceOf(arguments...));
  }
};

// The streams and events of `device` are about to be destroyed.
template <typename Way>
void ForgetDevice(const ClientTable* client, int device) {
  if (device == kUnknownDevice) return;
  const typename Way::OnBehalfOf other(device);
  client->device_reset();
}

struct ResettingDevice : Family {
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    const int device = Row::DeviceOf(arguments...);
    const void* const owner = Row::OwnerOf(arguments...);
    ForgetDevice<Way>(client, device);
    const Result result = real(arguments...);
    if (result == kSuccess && device != kUnknownDevice) client->memory_gone(device, owner);
    return result;
  }
};

// Reported before the real call, because from then on a marker that is recorded elsewhere could break the capture.
// Reported whether or not anything is gated, because that may change during the capture.
struct BeginningCapture : Family {
  static constexpr bool kStartsClient = true;
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    client->capture_begun(Row::StreamOf(arguments...));
    const Result result = real(arguments...);
    if (result != kSuccess) client->capture_ended(Row::StreamOf(arguments...));
    return result;
  }
};

// If the wrong thread tries to end a capture, the capture continues.
struct EndingCapture : Family {
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    const Result result = real(arguments...);
    if (result != kErrorWrongThread) client->capture_ended(Row::StreamOf(arguments...));
    return result;
  }
};

// ---- device memory

// Reserved before the real call, so that two threads cannot both get the last bytes.
struct Allocating : Family {
  static constexpr bool kStartsClient = true;
  template <typename Row, typename... Arguments>
  static bool Concerns(Arguments... arguments) {
    return Row::WantedOf(arguments...).device != kNoDevice;
  }
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    const Wanted wanted = Row::WantedOf(arguments...);
    MemoryRequest request;
    request.kind = wanted.kind;
    request.device = wanted.device;
    request.stream = wanted.stream;
    request.bytes = wanted.bytes;
    if (wanted.kind != MemoryKind::kPhysical) request.owner = Way::MemoryOwner();
    if (!client->memory_reserve(&request)) return Way::OutOfMemory(!request.is_captured);
    const Result result = real(arguments...);
    if (result == kSuccess) {
      const Allocated made = Row::MadeOf(arguments...);
      client->memory_keep(&request, made.handle, made.bytes);
    } else {
      client->memory_return(&request);
    }
    return result;
  }
};

// A call that may wait for the device, which the client is told about where anything is gated.
template <typename Way>
class ImplicitSync {
 public:
  ImplicitSync(const ClientTable* client, bool may_wait) : client_(may_wait && !Way::IsOpen() ? client : nullptr) {
    if (client_ != nullptr) client_->sync_begin(&sync_, SyncScope::kImplicit, nullptr);
  }
  void End(Result result) {
    if (client_ != nullptr) client_->sync_end(&sync_, result == kSuccess);
  }

 private:
  const ClientTable* const client_;
  Sync sync_;
};

enum class FreeIs { kWaiting, kInOrder, kOfPhysical };
struct Freeing : Family {
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    MemoryRelease release;
    client->memory_freeing(&release, Row::HandleOf(arguments...), Row::kFree == FreeIs::kOfPhysical);
    ImplicitSync<Way> sync(client, Row::kFree == FreeIs::kWaiting);
    const Result result = real(arguments...);
    sync.End(result);
    client->memory_freed(&release, result == kSuccess);
    return result;
  }
};

// Of the virtual memory API, besides: what lives on by a mapping, or by one more handle.
struct ChangingMapping : Family {
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    ImplicitSync<Way> sync(client, Row::kMayWait);
    const Result result = real(arguments...);
    sync.End(result);
    if (result == kSuccess) Row::ChangeOf(arguments...).Tell(client);
    return result;
  }
};

struct MakingPool : Family {
  template <typename Way, typename Row, typename... Arguments>
  static void After(Result result, const void*, Arguments... arguments) {
    if (result == kSuccess) Way::Pools().Add(Row::PoolOf(arguments...), Row::DeviceOf(arguments...));
  }
};
struct DestroyingPool : Family {
  template <typename Way, typename... Arguments>
  static void Before(Handle pool, Arguments...) {
    Way::Pools().Remove(pool);
  }
  template <typename Way, typename Row, typename... Arguments>
  static void After(Result, const void*, Arguments...) {}
};

// Says how large a device is and how much of it is free: to the program that is the limit, and what is left of it.
struct TellingMemory : Family {
  static constexpr bool kStartsClient = true;
  template <typename Way, typename Row, typename... Arguments>
  static Result Call(const ClientTable* client, typename Row::Function real, const void*, Arguments... arguments) {
    const Result result = real(arguments...);
    if (result != kSuccess) return result;
    MemoryView view;
    client->memory_view(Row::DeviceOf(arguments...), &view);
    ShowLimited(view, Row::FreeOf(arguments...), Row::TotalOf(arguments...));
    return result;
  }
};

// A request for a function's address: for one of the entry points the program gets our wrapper, else the runtime's
// answer.
struct GivingAddress : Family {
  template <typename Way, typename Row, typename... Arguments>
  static void After(Result result, const void*, Arguments... arguments) {
    if (result == kSuccess && !IsInert() && !IsDisabled()) Row::Replace(arguments...);
  }
};

}  // namespace xschedd::shim
