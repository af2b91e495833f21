// A program with the client library linked into it and a fake runtime below (fake_device.h), so that sanitizers check
// both: many threads launch, wait, query, record, make and destroy streams, capture, hint and hold at the same time,
// while concurrent_test.py holds the program, changes the policy and restarts the daemon.
//
//   concurrent_client THREADS   until standard input ends; then it exits while the library's threads go on
//   concurrent_client greeting  submits no work: it has one stream at any time, and replaces it each time that the
//                               library reports its devices to a daemon
//   concurrent_client toggling  submits no work: at the first byte of standard input it changes its priority, weight
//   and
//                               streams many thousand times, until they are 7, 70 and one stream, and prints a line
//
// Prints `right: N launches`. Each call's promise is checked at the call: after a synchronisation all earlier work is
// finished. Thread rule: in main.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/integration/client/fake_device.h"

extern "C" const xschedd::shim::ClientTable* xschedd_client_start(const xschedd::shim::StubTable* stub);

namespace {

using namespace xschedd;
using test::FakeDevice;
using test::FakeEvent;
using test::FakeStream;

const abi::Word g_open{0};
std::atomic<const abi::Word*> g_summary{&g_open};
const shim::ClientTable* g_client = nullptr;
std::atomic<bool> g_stop{false};
std::atomic<std::uint64_t> g_launches{0};

const char* const kEntries[] = {"hipLaunchKernel", "hipMemcpy"};
enum Entry : std::uint32_t { kLaunch, kCopy };

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(1);
}

// Does what the stub's wrappers do.
bool IsOpen() {
  return g_summary.load(std::memory_order_acquire)->load(std::memory_order_acquire) == 0;
}

void Submit(void* stream, Entry entry, std::uint64_t ns, std::uint64_t key) {
  const auto real = [&] {
    const std::uint64_t end = FakeDevice::Run(stream, ns);
    while (entry == kCopy && !FakeDevice::IsDone(end))
      std::this_thread::yield();
  };
  g_launches.fetch_add(1, std::memory_order_relaxed);
  if (IsOpen()) return real();
  shim::Submission submission{};
  submission.stream = stream;
  submission.caller = reinterpret_cast<const void*>(&IsOpen);
  submission.entry = entry;
  submission.drains = entry == kCopy;
  submission.may_time = entry == kLaunch;
  submission.kernel = {shim::KernelKind::kHostFunction, kEntries};
  submission.key = key;
  g_client->submit_begin(&submission);
  real();
  if (submission.stop != nullptr) FakeDevice::Record(submission.stop, stream);
  g_client->submit_end(&submission, true);
}

void Wait(shim::SyncScope scope, void* object, std::uint64_t end) {
  shim::Sync sync;
  g_client->sync_begin(&sync, scope, object);
  while (!FakeDevice::IsDone(end))
    std::this_thread::yield();
  g_client->sync_end(&sync, true);
}

// Whether all submitted work has finished, queried as by hipStreamQuery.
bool Query(void* stream) {
  shim::Sync sync;
  g_client->sync_begin(&sync, shim::SyncScope::kQuery, stream);
  bool is_done = false;
  do {
    is_done = FakeDevice::IsDone(FakeDevice::EndOf(stream));
  } while (!is_done && g_client->query_again(&sync));
  g_client->sync_end(&sync, is_done);
  return is_done;
}

class Worker {
 public:
  explicit Worker(unsigned number) : numbers_(number) { UseDevice(number); }
  ~Worker() {
    while (!streams_.empty())
      DestroyStream();
    for (const auto& event : events_)
      g_client->event_destroyed(event.get());
  }

  void Step() {
    void* const stream = Stream();
    switch (Random(24)) {
      case 0:
        if (streams_.size() < 4) MakeStream();
        break;
      case 1:
        if (streams_.size() > 1) DestroyStream();
        break;
      case 2:
        Wait(shim::SyncScope::kStream, stream, FakeDevice::EndOf(stream));
        break;
      case 3:
        Wait(shim::SyncScope::kDevice, nullptr, FakeDevice::EndOfAll());
        break;
      case 4:
        Query(stream);
        Wait(shim::SyncScope::kImplicit, nullptr, FakeDevice::EndOfAll());
        break;
      case 5:
        Settle();
        break;
      case 6:
      case 7:
        RecordAndWait(stream);
        break;
      case 8:
        Submit(stream, kCopy, 20'000, 0);
        break;
      case 9:
        Capture();
        break;
      case 10:
        Hint(stream);
        break;
      case 11:
        Hold(stream);
        break;
      case 12:
        Ask();
        break;
      case 13:
        UseDevice(Random(test::kDevices));
        break;
      default:
        Submit(stream, kLaunch, 5'000 + 1'000 * Random(100), 1 + Random(5));
        break;
    }
  }

 private:
  unsigned Random(unsigned below) { return static_cast<unsigned>(numbers_() % below); }

  // A stream of the thread's own, the legacy default stream, which all threads share, or the per-thread default stream.
  void* Stream() {
    const unsigned which = Random(8);
    if (which == 0 || streams_.empty()) return nullptr;
    if (which == 1) return reinterpret_cast<void*>(std::uintptr_t{2});  // NOLINT(performance-no-int-to-ptr)
    return streams_[Random(static_cast<unsigned>(streams_.size()))].get();
  }

  void UseDevice(unsigned device) {
    FakeDevice::current = static_cast<int>(device % test::kDevices);
    g_client->device_current(FakeDevice::current);
  }

  void MakeStream() {
    streams_.push_back(std::make_unique<FakeStream>(FakeDevice::current));
    g_client->stream_created(streams_.back().get(), -static_cast<int>(Random(2)), Random(2));
  }
  void DestroyStream() {
    g_client->stream_destroying(streams_.back().get());
    streams_.pop_back();
  }

  // A stream that only this thread uses stays finished: a marker of the client must not be visible.
  void Settle() {
    if (streams_.empty()) return;
    FakeStream* const stream = streams_.front().get();
    Submit(stream, kLaunch, 10'000, 1);
    Wait(shim::SyncScope::kStream, stream, FakeDevice::EndOf(stream));
    if (!Query(stream)) Fail("a synchronised stream reports unfinished work");
  }

  void RecordAndWait(void* stream) {
    if (events_.size() < 4) events_.push_back(std::make_unique<FakeEvent>());
    FakeEvent* const event = events_[Random(static_cast<unsigned>(events_.size()))].get();
    FakeDevice::Record(event, stream);
    g_client->event_recorded(event, stream);
    if (Random(2) == 0) Wait(shim::SyncScope::kEvent, event, event->done_ns.load(std::memory_order_relaxed));
    if (Random(4) == 0) {
      g_client->event_destroyed(events_.back().get());
      events_.pop_back();
    }
  }

  void Capture() {
    if (streams_.empty()) return;
    FakeStream* const stream = streams_.back().get();
    g_client->capture_begun(stream);
    stream->is_capturing.store(true, std::memory_order_relaxed);
    for (unsigned i = Random(4); i > 0; --i)
      Submit(stream, kLaunch, 0, 1);
    stream->is_capturing.store(false, std::memory_order_relaxed);
    g_client->capture_ended(stream);
  }

  void Hint(void* stream) {
    switch (Random(6)) {
      case 0:
        g_client->set_priority(static_cast<int>(Random(21)) - 10);
        break;
      case 1:
        g_client->set_weight(1 + Random(100));
        break;
      case 2:
        g_client->set_deadline(Random(2) != 0 ? 10'000 : 0);
        break;
      case 3:
        g_client->set_stream_deadline(stream, Random(2) != 0 ? 10'000 : 0);
        break;
      case 4:
        g_client->schedule_streams(Random(3) != 0);
        break;
      default:
        g_client->set_stream_priority(stream, static_cast<int>(Random(21)) - 10);
        break;
    }
  }

  void Hold(void* stream) {
    if (Random(2) == 0) {
      g_client->hold(FakeDevice::current, 1 + Random(500));
      if (Random(2) == 0) g_client->release(FakeDevice::current);
    } else {
      g_client->hold_stream(stream, 1 + Random(500));
      if (Random(2) == 0) g_client->release_stream(stream);
    }
  }

  static void Ask() {
    xschedd_status status{};
    g_client->get_status(&status);
    xschedd_device_status device{};
    g_client->get_device_status(FakeDevice::current, &device);
    if (device.completed > device.submitted) Fail("more work has finished than was submitted");
  }

  std::minstd_rand numbers_;
  std::vector<std::unique_ptr<FakeStream>> streams_;
  std::vector<std::unique_ptr<FakeEvent>> events_;
};

void Work(unsigned number) {
  while (!g_stop.load(std::memory_order_relaxed)) {
    // A new thread now and then, so that per-thread default streams and the library's records of them come and go.
    std::thread([number] {
      Worker worker(number);
      for (unsigned i = 0; i < 300 && !g_stop.load(std::memory_order_relaxed); ++i)
        worker.Step();
    }).join();
  }
}

FakeStream g_streams[2] = {FakeStream(0), FakeStream(0)};
std::atomic<bool> g_is_made{false};  // the first one
unsigned g_greetings = 0;            // the library's thread's own

void Toggle() {
  for (int i = 0; i < 10'000; ++i) {
    g_client->set_priority(8 + i % 2);
    g_client->set_weight(static_cast<unsigned>(80 + i % 2));
    g_client->stream_created(g_streams, i % 3, 0);
    g_client->set_stream_deadline(g_streams, 900);
    g_client->stream_destroying(g_streams);
  }
  g_client->set_priority(7);
  g_client->set_weight(70);
  g_client->stream_created(g_streams + 1, 0, 0);
  std::puts("toggled");
  std::fflush(stdout);
}

// Runs on the library's thread, in the middle of a greeting.
bool ChangeStreams(int, char* out, std::size_t size) {
  if (g_is_made.load(std::memory_order_acquire)) {
    g_client->stream_destroying(&g_streams[g_greetings % 2]);
    g_client->stream_created(&g_streams[++g_greetings % 2], 0, 0);
  }
  return std::snprintf(out, size, "0000:fa:ce.0") > 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_greeting = argc > 1 && std::strcmp(argv[1], "greeting") == 0;
  const bool is_toggling = argc > 1 && std::strcmp(argv[1], "toggling") == 0;
  shim::Vendor vendor = *FakeDevice::Vendor();
  if (is_greeting) vendor.pci_address = ChangeStreams;
  const shim::StubTable stub = {
      .version = shim::kInterfaceVersion,
      .vendor = &vendor,
      .entry_names = kEntries,
      .entry_count = 2,
      .devices_seen = 1,
      .set_summary =
          [](const abi::Word* word) { g_summary.store(word != nullptr ? word : &g_open, std::memory_order_release); },
      .find_object = nullptr,
      .group = nullptr,
  };
  g_client = xschedd_client_start(&stub);
  if (g_client == nullptr) Fail("the library does not start");
  std::vector<std::thread> threads;
  const int count = argc > 1 ? std::atoi(argv[1]) : 6;  // 0 for a word
  if (is_greeting) {
    g_client->stream_created(g_streams, 0, 0);
    g_is_made.store(true, std::memory_order_release);
  }
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    threads.emplace_back(Work, static_cast<unsigned>(i) + 1);
  char byte;
  if (is_toggling && ::read(STDIN_FILENO, &byte, 1) > 0) Toggle();
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  g_stop.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads)
    thread.join();
  g_client->exiting();
  std::printf("right: %llu launches\n", static_cast<unsigned long long>(g_launches.load(std::memory_order_relaxed)));
  return 0;
}
