// The shim with a daemon that writes anything to the board: gates, windows, the ring's tail, while the shim counts
// launches, records markers and reports. Properties: nothing is counted twice or lost; a launch without work in flight
// is admitted; no thread waits unless it is held.
#include <memory>

#include "client-shim/core/device_launch.h"
#include "client-shim/core/session.h"
#include "client-shim/core/window.h"
#include "common/clock.h"
#include "tests/fuzz/input.h"
#include "tests/unit/shim/fake_vendor.h"

namespace {

using namespace xschedd;
using namespace xschedd::shim;

constexpr std::uint32_t kSlots = 3;
constexpr std::size_t kBoardWords = sizeof(abi::Board) / sizeof(abi::Word);

// The daemon's end of the shared memory.
struct Shared {
  SharedMemory board_memory = MakeSharedMemory("board", sizeof(abi::Board), PeerMayWrite::kYes).value();
  SharedMemory ledger_memory = MakeSharedMemory("ledger", sizeof(abi::Ledger), PeerMayWrite::kYes).value();
  abi::Board& board = *static_cast<abi::Board*>(board_memory.mapping.Address());
  abi::Ledger& ledger = *static_cast<abi::Ledger*>(ledger_memory.mapping.Address());

  // The shim's end. A session and its pool are never freed; the next input uses the same ones.
  Session* MakeSession() const {
    static SessionPool& sessions = *new SessionPool;
    return sessions
        .Take(MapSharedMemory(board_memory.fd.Get(), sizeof(abi::Board), Access::kReadOnly).value(),
              MapSharedMemory(ledger_memory.fd.Get(), sizeof(abi::Ledger), Access::kReadWrite).value(), -1,
              abi::Newest(), nullptr)
        .value();
  }
};

StreamKey Key(std::uint8_t number) {
  return StreamKey{reinterpret_cast<void*>(std::uintptr_t{0x1000} + number % 4u), 0};
}

class World {
 public:
  World() : shared_(std::make_unique<Shared>()) {
    // Headers as the daemon writes them.
    const BoardWriter board(&shared_->board);
    const LedgerReader ledger(&shared_->ledger, &shared_->board);
    session_ = shared_->MakeSession();
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      trackers_[slot] = std::make_unique<DeviceTracker>(0, vendor_.Table(), &captures_, &deadlines_);
      trackers_[slot]->Reset(session_->Sink(slot));
    }
  }
  void Run(fuzz::Input& input) {
    while (!input.IsEmpty())
      Step(input);
    // The shim notices all work that the device has finished.
    for (std::uint8_t number = 0; number < 4; ++number)
      vendor_.Finish(Key(number).handle, time_ns_);
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      DeviceTracker& tracker = *trackers_[slot];
      tracker.EndSync(tracker.BeginSync(SyncScope::kDevice, Key(0)), true);
      const abi::LedgerDevice& told = shared_->ledger.devices[slot];
      FUZZ_CHECK(told.in_flight == 0 && !tracker.IsBusy());
      FUZZ_CHECK(told.submitted == told.completed);
    }
  }

 private:
  Window ReadWindow(std::uint32_t slot) const {
    return {session_->Board().WindowUs(slot), session_->Board().WindowFloor(slot)};
  }

  void Launch(fuzz::Input& input, std::uint32_t slot) {
    DeviceTracker& tracker = *trackers_[slot];
    static const std::atomic<std::uint32_t> epoch{1};
    // The epoch has changed, so the shim decides again instead of waiting.
    const bool is_held = (session_->Board().Word(slot) & abi::kHeld) != 0;
    const bool may_go = WaitAtGate(session_, slot, epoch, 0, nullptr);
    FUZZ_CHECK(may_go || is_held);
    const StreamKey stream = Key(input.Byte());
    const std::uint8_t how = input.Byte();
    const Window window = ReadWindow(slot);
    const std::uint32_t in_flight = shared_->ledger.devices[slot].in_flight;
    DeviceLaunch launch(&tracker, stream, how % 5u);
    launch.Enter(MonotonicNs());
    const bool admitted = launch.Admit(window, false);
    FUZZ_CHECK(admitted || (in_flight >= Floor(window) && window.us != 0));
    const bool forced = !admitted && (how & 8) != 0 && launch.Admit(window, true);
    if (!admitted && !forced) tracker.PollForRoom(1000);
    if (admitted || forced) {
      launch.Start((how & 16) != 0);
      if (launch.StopMarker() != nullptr) vendor_.LaunchTimed(launch.StopMarker(), stream.handle);
    }
    launch.Leave((admitted || forced) && (how & 32) == 0, (how & 64) != 0);
    (void)LaunchLimit(window, DurationEstimate());
  }

  void Step(fuzz::Input& input) {
    const std::uint8_t op = input.Byte();
    const std::uint32_t slot = (op >> 5) % kSlots;
    DeviceTracker& tracker = *trackers_[slot];
    switch (op & 0x1f) {
      case 0: {
        auto* words = reinterpret_cast<abi::Word*>(&shared_->board);
        words[input.Below(kBoardWords)] = input.Take<std::uint32_t>();
        break;
      }
      case 1: {
        abi::Gate& gate = shared_->board.gates[slot];
        gate.window_us = input.Take<std::uint32_t>();
        gate.window_floor = input.Take<std::uint16_t>() * (input.Flag() ? 65'537u : 1u);
        gate.word = input.Byte();
        break;
      }
      case 2:
        shared_->board.control.ring_tail = input.Take<std::uint64_t>();
        break;
      case 3:
        shared_->board.control.lease_until_ns = input.Take<std::uint64_t>();
        break;
      case 4:
        time_ns_ += input.Take<std::uint32_t>();
        vendor_.Finish(Key(input.Byte()).handle, time_ns_);
        break;
      case 5:
        tracker.Poll();
        break;
      case 6:
        (void)tracker.Tick(time_ns_);
        break;
      case 7: {
        const Snapshot snapshot =
            tracker.BeginSync(input.Flag() ? SyncScope::kStream : SyncScope::kQuery, Key(input.Byte()));
        tracker.EndSync(snapshot, input.Flag());
        break;
      }
      case 8:
        tracker.ForgetStream(Key(input.Byte()).handle);
        break;
      case 9: {
        void* const event = reinterpret_cast<void*>(std::uintptr_t{0x9000} + input.Byte() % 3u);
        if (input.Flag()) {
          tracker.EventRecorded(event, Key(input.Byte()));
        } else {
          tracker.EndSync(tracker.BeginEventSync(event), true);
        }
        break;
      }
      case 10:
        (void)tracker.TakeActivity();
        (void)tracker.InFlightNs();
        (void)tracker.IsBehindOwnMarker(Key(input.Byte()));
        break;
      default:
        Launch(input, slot);
        break;
    }
  }

  std::unique_ptr<Shared> shared_;
  FakeVendor vendor_;
  Captures captures_;
  Deadlines deadlines_;
  Session* session_ = nullptr;
  std::unique_ptr<DeviceTracker> trackers_[kSlots];
  std::uint64_t time_ns_ = 1'000'000'000;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  {
    // Wrong headers are refused.
    auto shared = std::make_unique<Shared>();
    fuzz::Input head(data, size);
    shared->board.header.magic = head.Flag() ? abi::kBoardMagic : head.Take<std::uint32_t>();
    shared->board.header.version = head.Flag() ? abi::kVersion : head.Take<std::uint32_t>();
    shared->board.header.layout_hash = head.Flag() ? abi::kLayoutHash : head.Take<std::uint64_t>();
    (void)BoardReader::Open(&shared->board);
  }
  World world;
  world.Run(input);
  return 0;
}
