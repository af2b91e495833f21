// The tracked path allocates nothing in steady state, and stays consistent when memory runs out. Counts every `new` of
// this test program, and lets one fail. A sanitizer has allocation functions of its own, which these would be mixed
// with: it goes without this test.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <atomic>
#include <cstdlib>
#include <new>

#include "client-shim/core/device_launch.h"
#include "common/clock.h"
#include "fake_vendor.h"
#include "tests/catch.h"

namespace {
std::atomic<std::size_t> g_allocations{0};
std::atomic<std::size_t> g_refused{0};  // number of the one that fails; 0: none
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  const std::size_t number = g_allocations.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number == g_refused.load(std::memory_order_relaxed)) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

using namespace xschedd::shim;

namespace {
struct NoSink : TrackerSink {
  void Report(xschedd::abi::TransitionKind, std::uint64_t) override {}
  xschedd::abi::LedgerDevice& Counters() override { return counters; }
  bool WantsWaits() const override { return false; }
  bool WantsCount() const override { return false; }
  xschedd::abi::LedgerDevice counters{};
};
}  // namespace

TEST_CASE("launches, markers, waits and synchronisations of a tracked client allocate nothing", "[tracker]") {
  FakeVendor vendor;
  vendor.keeps_record = false;
  Captures captures;
  Deadlines deadlines;
  NoSink sink;
  DeviceTracker tracker(0, vendor.Table(), &captures, &deadlines);
  tracker.Reset(&sink);
  const Window window{500, 2};
  std::uint64_t now = 1'000'000;
  const auto work = [&] {
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const StreamKey stream{reinterpret_cast<void*>(16 + i % 3 * 16), 0};
      DeviceLaunch launch(&tracker, stream, 1 + i % 5);
      launch.Enter(xschedd::MonotonicNs());
      while (!launch.Admit(window, false)) {
        tracker.PollForRoom(0);
        for (std::uintptr_t handle = 16; handle <= 48; handle += 16)
          vendor.Finish(reinterpret_cast<void*>(handle), now += 1000);
      }
      launch.Start(true);
      if (launch.StopMarker() != nullptr) vendor.LaunchTimed(launch.StopMarker(), stream.handle);
      launch.Leave(true, false);
      if (i % 16 == 15) {
        const Snapshot snapshot = tracker.BeginSync(SyncScope::kDevice, StreamKey{});
        for (std::uintptr_t handle = 16; handle <= 48; handle += 16)
          vendor.Finish(reinterpret_cast<void*>(handle), now += 1000);
        tracker.EndSync(snapshot, true);
      }
    }
  };
  // How much is in flight at most depends on the machine, too; when that has been seen, there is room for it.
  bool is_steady = false;
  for (int round = 0; round < 20 && !is_steady; ++round) {
    const std::size_t before = g_allocations.load();
    work();
    is_steady = g_allocations.load() == before;
  }
  CHECK(is_steady);
}

TEST_CASE("where memory has run out each launch leaves, and its stream can be destroyed", "[tracker]") {
  constexpr std::uintptr_t kStream = 16;
  bool has_failed = true;
  for (std::size_t number = 1; has_failed; ++number) {
    FakeVendor vendor;
    vendor.keeps_record = false;
    Captures captures;
    Deadlines deadlines;
    NoSink sink;
    DeviceTracker tracker(0, vendor.Table(), &captures, &deadlines);
    tracker.Reset(&sink);
    has_failed = false;
    g_refused.store(g_allocations.load() + number);
    try {
      for (int i = 0; i < 20; ++i) {
        DeviceLaunch launch(&tracker, StreamKey{reinterpret_cast<void*>(kStream), 0}, 1);
        launch.Enter(xschedd::MonotonicNs());
        launch.Admit(Window{500, 2}, true);
        launch.Start(false);
        launch.Leave(true, false);
      }
    } catch (const std::bad_alloc&) {
      has_failed = true;
    }
    g_refused.store(0);
    tracker.ForgetStream(reinterpret_cast<void*>(kStream));  // comes back
    REQUIRE_FALSE(tracker.IsBusy());                         // what had entered has left
    REQUIRE(number < 1000);
  }
}

#endif
