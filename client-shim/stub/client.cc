#include "client-shim/stub/client.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client-shim/cuda/driver.h"
#include "client-shim/hip/runtime.h"
#include "client-shim/stub/elf_objects.h"
#include "client-shim/stub/launch_path.h"
#include "client-shim/stub/say.h"

namespace xschedd::shim {

const abi::Word g_word_start{1};
const abi::Word g_word_open{0};
__thread int g_depth __attribute__((tls_model("initial-exec"))) = 0;

FrontEnd* const kFrontEnds[kFrontEndCount] = {&hip::g_front_end, &cuda::g_front_end};

namespace {

constexpr char kLibraryName[] = "libxschedd-client.so";

enum Stage : int { kFresh, kStarting, kRunning, kInert };

std::atomic<int> g_stage{kFresh};
std::atomic<const ClientTable*> g_client{nullptr};
std::atomic<FrontEnd*> g_scheduled{nullptr};  // release: once it is prepared, and before the stage changes
std::atomic<bool> g_reported_second{false};   // relaxed
// The program's latest hints, for the start of the client. seq_cst: see Start.
std::atomic<int> g_priority{XSCHEDD_PRIORITY_NONE};
std::atomic<unsigned> g_weight{0};
constexpr uint64_t kNoDeadline = ~uint64_t{0};
std::atomic<uint64_t> g_deadline_us{kNoDeadline};
constexpr int kAsEnvironmentSays = -1;
std::atomic<int> g_streams{kAsEnvironmentSays};
pthread_mutex_t g_group_lock = PTHREAD_MUTEX_INITIALIZER;  // never held for long
bool g_is_group_used = false;                              // the client has g_group, which must not change any more
char g_group[kLongestGroup + 1] = "";

// The launch path of the scheduled front end reads `word`; those of the others stay open.
void PointAt(const abi::Word* word) {
  FrontEnd* const scheduled = g_scheduled.load(std::memory_order_acquire);
  for (FrontEnd* front_end : kFrontEnds)
    front_end->point_at(front_end == scheduled ? word : &g_word_open);
}

void SetSummary(const abi::Word* word) {
  PointAt(word != nullptr && g_stage.load(std::memory_order_acquire) != kInert ? word : &g_word_open);
}

void BecomeInert() {
  g_stage.store(kInert, std::memory_order_release);
  PointAt(&g_word_open);
}

// A child of fork has no agent thread, and the session is the parent's. Neither HIP nor CUDA can be used after fork
// once it is initialised, so the child is never scheduled.
void AfterForkInChild() {
  const ClientTable* client = g_client.exchange(nullptr, std::memory_order_acq_rel);
  BecomeInert();
  if (client != nullptr) client->forked();
}

// Registered after the runtime was loaded, so it runs before the runtime's destructors.
void AtExit() {
  const Inside inside;
  if (const ClientTable* client = g_client.load(std::memory_order_acquire)) client->exiting();
}

// XSCHEDD_CLIENT_LIB, else the file beside this one.
bool LibraryPath(char* out, unsigned long size) {
  const char* given = secure_getenv("XSCHEDD_CLIENT_LIB");
  if (given != nullptr && *given != '\0') {
    strncpy(out, given, size - 1);
    out[size - 1] = '\0';
    return true;
  }
  FindObjectByAddress(reinterpret_cast<const void*>(&LibraryPath), out, size);
  char* slash = strrchr(out, '/');
  char* name = slash != nullptr ? slash + 1 : out;
  if (static_cast<unsigned long>(name - out) + sizeof kLibraryName > size) return false;
  memcpy(name, kLibraryName, sizeof kLibraryName);
  return true;
}

// From glibc 2.35 on.
decltype(StubTable::find_object) RealFindObject() {
  return reinterpret_cast<decltype(StubTable::find_object)>(
      FindSymbol(FindObjectByName("ld-linux-x86-64.so.2"), "_dl_find_object"));
}

// The client library, as it was loaded.
struct Library {
  char path[4096] = "";
  bool has_loader = false;
  char reason[512] = "";  // the loader's error; empty: none
  StartFunction start = nullptr;
};

void Open(Library* library) {
  const DlopenFunction open = RealDlopen();
  const DlsymFunction look_up = RealDlsym();
  library->has_loader = open != nullptr && look_up != nullptr && LibraryPath(library->path, sizeof library->path);
  if (!library->has_loader) return;
  // No RTLD_DEEPBIND: it would bypass the program's own malloc (shared reference grpc-in-a-preload.md, 1.3).
  void* object = open(library->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object != nullptr) {
    library->start = reinterpret_cast<StartFunction>(look_up(object, kStartSymbol));
    return;
  }
  const DlerrorFunction why = RealDlerror();
  const char* reason = why != nullptr ? why() : nullptr;
  strncpy(library->reason, reason != nullptr ? reason : "not found", sizeof library->reason - 1);
}

const ClientTable* StartLibrary(const FrontEnd& front_end, const Library& library) {
  const char* const path = library.path;
  if (!library.has_loader) {
    Say("cannot load ", kLibraryName, ": this C library has no dlopen; this process runs unscheduled");
    return nullptr;
  }
  if (library.reason[0] != '\0') {
    const bool is_there = access(path, R_OK) == 0;
    Say("this process runs unscheduled: ", library.reason,
        is_there ? "; xschedctl doctor shows what is wrong"
                 : "; install libxschedd-client.so beside libxschedd-shim.so, or unset LD_PRELOAD");
    return nullptr;
  }
  pthread_mutex_lock(&g_group_lock);
  g_is_group_used = true;
  pthread_mutex_unlock(&g_group_lock);
  static const char* names[kMaxEntries];
  for (uint32_t entry = 0; entry < front_end.entry_names->count; ++entry)
    names[entry] = (*front_end.entry_names)[entry];
  static StubTable stub;
  stub = StubTable{kInterfaceVersion,
                   front_end.make_vendor(),
                   names,
                   front_end.entry_names->count,
                   front_end.devices_seen.load(std::memory_order_relaxed),  // relaxed: a set that only grows
                   SetSummary,
                   RealFindObject(),
                   g_group};
  const ClientTable* client = library.start != nullptr ? library.start(&stub) : nullptr;
  if (client == nullptr || client->version != kInterfaceVersion) {
    Say("this process runs unscheduled: ", path, " is of another release; install both libraries from one package");
    return nullptr;
  }
  return client;
}

// Whether another copy of this object comes first in the process (preloaded by two paths): that one schedules.
bool IsSecondCopy() {
  const DlopenFunction open = RealDlopen();
  const DlsymFunction look_up = RealDlsym();
  if (open == nullptr || look_up == nullptr) return false;
  // By the program's handle, because with RTLD_DEFAULT -Bsymbolic would find our own.
  void* program = open(nullptr, RTLD_LAZY);
  void* first = program != nullptr ? look_up(program, "xschedd_version") : nullptr;
  CloseObject(program);
  return first != nullptr && !FindObjectByAddress(reinterpret_cast<const void*>(&g_stage)).Covers(first);
}

struct Hints {
  int priority = XSCHEDD_PRIORITY_NONE;
  unsigned weight = XSCHEDD_WEIGHT_NONE;
  uint64_t deadline_us = kNoDeadline;
  int streams = kAsEnvironmentSays;
  bool operator==(const Hints&) const = default;
};

Hints RememberedHints() {
  return {g_priority.load(std::memory_order_seq_cst), g_weight.load(std::memory_order_seq_cst),
          g_deadline_us.load(std::memory_order_seq_cst), g_streams.load(std::memory_order_seq_cst)};
}

// Their results are not needed: the program got an answer when it gave the hints.
void ApplyHints(const ClientTable& client, const Hints& hints, Hints* applied) {
  if (hints.priority != applied->priority) client.set_priority(hints.priority);
  if (hints.weight != applied->weight) client.set_weight(hints.weight);
  if (hints.deadline_us != applied->deadline_us) client.set_deadline(hints.deadline_us);
  if (hints.streams != applied->streams) client.schedule_streams(hints.streams != 0);
  *applied = hints;
}

void Start(FrontEnd* front_end, const Library& library) {
  g_scheduled.store(front_end, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
  atexit(AtExit);
  // Until the library says otherwise, calls of other threads go straight through.
  PointAt(&g_word_open);
  const ClientTable* client = StartLibrary(*front_end, library);
  if (client == nullptr) {
    BecomeInert();
    return;
  }
  Hints applied;
  ApplyHints(*client, RememberedHints(), &applied);
  // seq_cst: a thread that gives a hint stores it and then looks for the client. Either it finds the client, or the
  // hint is found here. Repeated, so that the latest one is applied last.
  g_client.store(client, std::memory_order_seq_cst);
  for (Hints latest = RememberedHints(); latest != applied; latest = RememberedHints())
    ApplyHints(*client, latest, &applied);
  g_stage.store(kRunning, std::memory_order_release);
}

// Waits while another thread starts the client. The wait is bounded, because that thread may wait for the loader's
// lock, which the calling one may hold: glibc before 2.34 takes it when a library first uses a thread-local variable.
// After a timeout, calls go straight through until the client runs.
void WaitForStart() {
  static std::atomic<bool> is_stuck{false};
  constexpr int kMaxNaps = 2000;
  const timespec nap{0, 1'000'000};
  for (int i = 0; i < kMaxNaps && g_stage.load(std::memory_order_acquire) == kStarting; ++i) {
    if (is_stuck.load(std::memory_order_relaxed)) return;
    nanosleep(&nap, nullptr);
  }
  if (g_stage.load(std::memory_order_acquire) == kStarting) is_stuck.store(true, std::memory_order_relaxed);
}

}  // namespace

const ClientTable* StartClient(FrontEnd* front_end) {
  if (g_stage.load(std::memory_order_acquire) <= kStarting) {
    const int saved_errno = errno;
    const Inside inside;
    // Everything that takes the loader's lock comes first: another thread may come here from a library's constructor,
    // which holds that lock.
    Library library;
    const bool is_wanted = !IsDisabled() && !IsSecondCopy() && front_end->prepare();
    if (is_wanted) Open(&library);
    int fresh = kFresh;
    if (!g_stage.compare_exchange_strong(fresh, kStarting, std::memory_order_acq_rel)) {
      WaitForStart();
    } else if (is_wanted) {
      Start(front_end, library);
    } else {
      BecomeInert();
    }
    errno = saved_errno;
  }
  if (const ClientTable* client = RunningClient(front_end)) return client;
  if (RunningClient() != nullptr && !g_reported_second.exchange(true, std::memory_order_relaxed)) {
    Say("this process uses ", g_scheduled.load(std::memory_order_relaxed)->name, " and ", front_end->name,
        "; work of the second one is not scheduled");
  }
  return nullptr;
}

const ClientTable* RunningClient(const FrontEnd* front_end) {
  const ClientTable* client = RunningClient();
  // relaxed: written before the client.
  return g_scheduled.load(std::memory_order_relaxed) == front_end ? client : nullptr;
}

const ClientTable* RunningClient() {
  // seq_cst: see Start. On x86-64 it is the same load as acquire.
  return g_client.load(std::memory_order_seq_cst);
}

bool IsInert() {
  return g_stage.load(std::memory_order_acquire) == kInert;
}

void NoteDevice(FrontEnd* front_end, int device) {
  if (device < 0 || device >= 64) return;
  const uint64_t bit = uint64_t{1} << device;
  // relaxed: a set that only grows.
  if ((front_end->devices_seen.load(std::memory_order_relaxed) & bit) != 0) return;
  front_end->devices_seen.fetch_or(bit, std::memory_order_relaxed);
  const Inside inside;
  if (const ClientTable* client = RunningClient(front_end)) client->device_current(device);
}

void RememberPriority(int priority) {
  g_priority.store(priority, std::memory_order_seq_cst);
}

void RememberWeight(unsigned weight) {
  g_weight.store(weight, std::memory_order_seq_cst);
}

void RememberDeadline(uint64_t us) {
  g_deadline_us.store(us, std::memory_order_seq_cst);
}

void RememberStreams(bool on) {
  g_streams.store(on ? 1 : 0, std::memory_order_seq_cst);
}

void FillRemembered(xschedd_status* status) {
  const Hints hints = RememberedHints();
  status->priority_hint = hints.priority;
  status->weight_hint = hints.weight;
  status->deadline_us = hints.deadline_us == kNoDeadline ? XSCHEDD_DEADLINE_NONE : hints.deadline_us;
  status->schedules_streams = hints.streams == 1;
  for (const FrontEnd* front_end : kFrontEnds)
    status->devices |= front_end->devices_seen.load(std::memory_order_relaxed);
}

bool RememberGroup(const char* group, unsigned long length) {
  pthread_mutex_lock(&g_group_lock);
  const bool is_in_time = !g_is_group_used;
  if (is_in_time) {
    memcpy(g_group, group, length);
    g_group[length] = '\0';
  }
  pthread_mutex_unlock(&g_group_lock);
  return is_in_time;
}

bool IsDisabled() {
  const char* value = getenv("XSCHEDD_DISABLE");
  return value != nullptr && *value != '\0' && strcmp(value, "0") != 0;
}

namespace {

// glibc 2.34 and later have these functions in libc.so.6, earlier ones in libdl.so.2. They are looked up in the objects
// themselves: linking against them would require the build machine's glibc version, and `dlsym` is the stub's own.
void* FindInLibc(const char* name) {
  void* found = FindSymbol(FindObjectByName("libc.so.6"), name);
  return found != nullptr ? found : FindSymbol(FindObjectByName("libdl.so.2"), name);
}

// relaxed: whoever looks the name up finds the same function.
void* FindInLibcOnce(std::atomic<void*>* known, const char* name) {
  void* found = known->load(std::memory_order_relaxed);
  if (found != nullptr) return found;
  found = FindInLibc(name);
  known->store(found, std::memory_order_relaxed);
  return found;
}

}  // namespace

DlopenFunction RealDlopen() {
  return reinterpret_cast<DlopenFunction>(FindInLibc("dlopen"));
}
DlerrorFunction RealDlerror() {
  return reinterpret_cast<DlerrorFunction>(FindInLibc("dlerror"));
}
void ForgetLoaderError() {
  if (const DlerrorFunction error = RealDlerror()) error();
}
void CloseObject(void* handle) {
  const auto close = reinterpret_cast<int (*)(void*)>(FindInLibc("dlclose"));
  if (close != nullptr) close(handle);
}
void KeepLoaded(const ElfObject& object) {
  char path[4096] = "";
  FindObjectByAddress(reinterpret_cast<const void*>(object.first), path, sizeof path);
  const DlopenFunction open = RealDlopen();
  // The handle is never closed.
  if (open != nullptr && *path != '\0' && open(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == nullptr) {
    ForgetLoaderError();
  }
}
DlsymFunction RealDlsym() {
  static std::atomic<void*> known{nullptr};
  return reinterpret_cast<DlsymFunction>(FindInLibcOnce(&known, "dlsym"));
}
void* RealDlvsym() {
  static std::atomic<void*> known{nullptr};
  return FindInLibcOnce(&known, "dlvsym");
}

}  // namespace xschedd::shim
