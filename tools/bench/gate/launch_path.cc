// The library's cost of a launch of a tracked client, by part: the shim's client code above a runtime that does
// nothing, with a session's memory but no daemon. Each thread launches on its own stream and synchronises after each
// batch, which is not timed. Prints JSON. On a machine with fewer cores than threads the times of several are CPU time,
// so that the wait for a core does not count, and say little about contention. Several are measured without a pause,
// when all contend for the same lines of the cache all the time, and `spaced`: with a runtime's call of --call-ns in
// each launch, as real ones have, less that of one thread.
//
// `valgrind --tool=callgrind --toggle-collect=LaunchBatch` counts the same by function.
// Thread rule: in main; a runtime's functions, any thread.
#include <sys/eventfd.h>
#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "client-shim/core/client.h"
#include "client-shim/core/device_launch.h"
#include "common/clock.h"
#include "common/command_syntax.h"

using namespace xschedd;
using namespace xschedd::shim;

namespace {

constexpr std::uint32_t kSlot = 0;

// ---- a runtime whose work is always finished

struct Marker {
  std::atomic<std::uint64_t> time_ns{0};
};

// For callgrind, under which everything takes fifty times as long: the device's own clock, a microsecond a launch. 0:
// it is the machine's.
std::uint64_t g_device_ns = 0;

const Vendor kVendor = {
    "none",
    "nothing 1",
    "none",
    [] { return 0; },
    [](void*) { return 0; },
    [](int, char*, std::size_t) { return false; },
    [](int, char*, std::size_t) { return false; },
    [](int) { return 0u; },
    [](void*) { return false; },
    [](int) -> void* { return new Marker; },
    [](int, void* marker, void*) {
      static_cast<Marker*>(marker)->time_ns.store(g_device_ns != 0 ? g_device_ns : MonotonicNs(),
                                                  std::memory_order_relaxed);
      return true;
    },
    [](void*) { return MarkerState::kDone; },
    [](int, void*) { return MarkerState::kDone; },
    [](void* from, void* to, std::int64_t* out) {
      // relaxed: independent values.
      *out = static_cast<std::int64_t>(static_cast<Marker*>(to)->time_ns.load(std::memory_order_relaxed) -
                                       static_cast<Marker*>(from)->time_ns.load(std::memory_order_relaxed));
      return true;
    },
    [](std::uint64_t*, Stamp*) { return false; },
    [](int, char*, std::size_t) { return false; },
    [] {},
    [](int mode) { return mode; },
    [](const KernelRef&, void*) -> const char* { return nullptr; },
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr};

// ---- a tracked client with a session; never freed

struct Process {
  abi::Board board{};
  abi::Ledger ledger{};
  StubTable stub{kInterfaceVersion, &kVendor, nullptr, 0, 0, [](const abi::Word*) {}, nullptr, nullptr};
  Client client{stub};
  BoardWriter writer{&board};
  LedgerReader reader{&ledger, &board};
  SessionPool sessions;

  Process() {
    writer.RenewLease(MonotonicNs() + 3'600'000'000'000);
    writer.Set(kSlot, {.held = false, .tracked = true, .window_us = 20'000, .window_floor = 4});
    client.BeginSession(sessions
                            .Take(Mapping(&board, sizeof board), Mapping(&ledger, sizeof ledger),
                                  ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), abi::Newest(), nullptr)
                            .value());
  }
};

unsigned g_kinds = 0;

// Of the launch of that number. Real keys are hashes; numbers in a row would hardly ever meet in a table.
LaunchKey KeyOf(unsigned number) {
  return 1 + (number % g_kinds + 1) * 0xbf58476d1ce4e5b9 % 0x94d049bb133111eb;
}

Submission Submit(void* stream, unsigned number) {
  Submission submission{};
  submission.stream = stream;
  submission.kernel = {KernelKind::kHostFunction, &kVendor};
  submission.key = KeyOf(number);
  return submission;
}

void Synchronise(Client& client, void* stream) {
  Sync sync;
  client.SyncBegin(&sync, SyncScope::kStream, stream);
  client.SyncEnd(&sync, true);
}

std::uint64_t ThreadNs() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

// Not inlined and with a C name, so that callgrind can count what it calls.
extern "C" __attribute__((noinline)) void LaunchBatch(Client& client, void* stream, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    Submission submission = Submit(stream, i);
    client.SubmitBegin(&submission);
    client.SubmitEnd(&submission, true);
    if (g_device_ns != 0) g_device_ns += 1000;  // only then: threads would share what they write
  }
}

namespace {

struct Load {
  unsigned launches;             // of each thread
  unsigned batch;                // between two synchronisations
  bool by_wall;                  // times are of the wall's clock: each thread has a core
  std::uint64_t call_ticks = 0;  // of the time stamp counter, for which the runtime's call takes
};

void LaunchSpaced(Client& client, void* stream, const Load& load) {
  for (unsigned i = 0; i < load.batch; ++i) {
    Submission submission = Submit(stream, i);
    client.SubmitBegin(&submission);
    const std::uint64_t start = __rdtsc();
    while (__rdtsc() - start < load.call_ticks) {
    }
    client.SubmitEnd(&submission, true);
  }
}

// Nanoseconds per launch: the median of the batches.
double Whole(Client& client, void* stream, const Load& load) {
  std::vector<double> batches;
  for (unsigned done = 0; done < load.launches; done += load.batch) {
    const std::uint64_t start = load.by_wall ? MonotonicNs() : ThreadNs();
    if (load.call_ticks == 0) {
      LaunchBatch(client, stream, load.batch);
    } else {
      LaunchSpaced(client, stream, load);
    }
    batches.push_back(static_cast<double>((load.by_wall ? MonotonicNs() : ThreadNs()) - start) / load.batch);
    Synchronise(client, stream);
  }
  std::nth_element(batches.begin(), batches.begin() + static_cast<long>(batches.size() / 2), batches.end());
  return batches[batches.size() / 2];
}

double Threads(Client& client, unsigned threads, const Load& load) {
  std::vector<char> streams(threads);
  std::vector<double> each(threads);
  std::vector<std::thread> running;
  for (char& stream : streams)
    client.StreamCreated(&stream, 0, 1);
  client.AwaitDecisionUntil(0);  // as the agent does after the daemon has set the device's word
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&, i] { each[i] = Whole(client, &streams[i], load); });
  }
  for (std::thread& thread : running)
    thread.join();
  for (char& stream : streams)
    client.StreamDestroying(&stream);
  double sum = 0;
  for (const double ns : each)
    sum += ns;
  return sum / threads;
}

double TicksPerNs() {
  const std::uint64_t start_ns = MonotonicNs(), start = __rdtsc();
  while (MonotonicNs() - start_ns < 20'000'000) {
  }
  return static_cast<double>(__rdtsc() - start) / static_cast<double>(MonotonicNs() - start_ns);
}

// The tracker's parts, timed with the time stamp counter, less the cost of reading it.
struct Parts {
  double begin = 0, end = 0;
};

Parts TrackerParts(unsigned launches, unsigned batch) {
  Captures captures;
  Deadlines deadlines;
  struct NoSink : TrackerSink {
    void Report(abi::TransitionKind, std::uint64_t) override {}
    abi::LedgerDevice& Counters() override { return counters; }
    bool WantsWaits() const override { return false; }
    bool WantsCount() const override { return false; }
    abi::LedgerDevice counters{};
  } sink;
  DeviceTracker tracker(0, &kVendor, &captures, &deadlines);
  tracker.Reset(&sink);
  const Window window{20'000, 4};
  char stream = 0;
  const StreamKey key{&stream, 0};
  tracker.NoteStream(&stream, true);
  constexpr int kParts = 3;
  std::vector<double> ticks[kParts];
  const std::uint64_t start_ns = MonotonicNs(), start = __rdtsc();
  for (unsigned done = 0; done < launches; done += batch) {
    std::uint64_t sums[kParts] = {};
    for (unsigned i = 0; i < batch; ++i) {
      const std::uint64_t before = __rdtsc();
      const std::uint64_t at = __rdtsc();
      DeviceLaunch launch(&tracker, key, KeyOf(i), 1);
      (void)launch.Begin(window, false, MonotonicNs());
      const std::uint64_t begun_at = __rdtsc();
      launch.Leave(true, false);
      const std::uint64_t left = __rdtsc();
      const std::uint64_t parts[kParts] = {at - before, begun_at - at, left - begun_at};
      for (int part = 0; part < kParts; ++part)
        sums[part] += parts[part];
    }
    for (int part = 0; part < kParts; ++part)
      ticks[part].push_back(static_cast<double>(sums[part]) / batch);
    tracker.EndSync(tracker.BeginSync(SyncScope::kStream, key), true);
  }
  const double ns = static_cast<double>(MonotonicNs() - start_ns) / static_cast<double>(__rdtsc() - start);
  const auto median = [&](int part) {
    auto& values = ticks[part];
    std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
    return values[values.size() / 2] * ns;
  };
  const double reading = median(0);
  return {median(1) - reading, median(2) - reading};
}

}  // namespace

int main(int argc, char** argv) {
  unsigned launches = 200'000, threads = 8, batch = 320, kinds = 40, call_ns = 2000;
  bool is_counted = false;
  xschedd::CommandSyntax syntax("The library's cost of a launch of a tracked client.");
  syntax.AddOption("--launches", launches, "launches of each thread", {.value = xschedd::OptionForm::Value::kPositive});
  syntax.AddOption("--threads", threads, "threads of the part with several",
                   {.value = xschedd::OptionForm::Value::kPositive});
  syntax.AddOption("--batch", batch, "launches between two synchronisations",
                   {.value = xschedd::OptionForm::Value::kPositive});
  syntax.AddOption("--kinds", kinds, "kinds of launches, which take turns; an eager program has some dozens",
                   {.value = xschedd::OptionForm::Value::kPositive});
  syntax.AddOption("--call-ns", call_ns, "what a runtime's own call takes, in the spaced part",
                   {.value = xschedd::OptionForm::Value::kPositive});
  syntax.AddFlag("--counted", is_counted, "only the part with one thread, for callgrind");
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;

  g_kinds = kinds;
  if (is_counted) g_device_ns = 1000;
  auto& process = *new Process;
  const bool has_cores = std::thread::hardware_concurrency() >= threads;
  const double one = Threads(process.client, 1, {launches, batch, false});
  if (is_counted) return 0;
  const double several = Threads(process.client, threads, {launches, batch, has_cores});
  const auto ticks = static_cast<std::uint64_t>(call_ns * TicksPerNs());
  const double one_spaced = Threads(process.client, 1, {launches / 4, batch, has_cores, ticks});
  const double several_spaced = Threads(process.client, threads, {launches / 4, batch, has_cores, ticks});
  const Parts parts = TrackerParts(launches, batch);
  std::printf(
      "{\"launches\": %u, \"one_ns\": %.1f, \"threads\": %u, \"several_ns\": %.1f, \"spaced_ns\": %.1f, "
      "\"spaced_more_ns\": %.1f, \"has_cores\": %s, \"parts_ns\": {\"asked\": %.1f, \"admitted\": %.1f, \"counted\": "
      "%.1f}}\n",
      launches, one, threads, several, one_spaced, several_spaced - one_spaced, has_cores ? "true" : "false",
      one - parts.begin - parts.end, parts.begin, parts.end);
  return 0;
}
