// A program's requests to the shim: its hints (core/hints.h) and its own holds (core/own_holds.h).
#include <atomic>
#include <thread>

#include "client-shim/core/hints.h"
#include "client-shim/core/own_holds.h"
#include "common/clock.h"
#include "tests/catch.h"

namespace xschedd::shim {
namespace {

void* const kOne = reinterpret_cast<void*>(0x10);
void* const kOther = reinterpret_cast<void*>(0x20);
constexpr std::uint64_t kLong = 600'000'000'000;  // ns; longer than any test
constexpr std::uint64_t kShort = 1'000'000;

// A thread that submits to `stream` of `device` when no hold prevents it.
class Submitter {
 public:
  Submitter(OwnHolds* holds, int device, void* stream)
      : thread_([this, holds, device, stream] {
          holds->Wait(device, stream);
          has_passed_ = true;
        }) {}
  ~Submitter() { thread_.join(); }
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;
  bool HasPassed() const { return has_passed_; }
  void Pass() {
    while (!has_passed_)
      std::this_thread::yield();
  }

 private:
  std::atomic<bool> has_passed_{false};
  std::thread thread_;
};

bool Passes(OwnHolds* holds, int device, void* stream) {
  const std::uint64_t before = holds->WaitedNs();
  Submitter submitter(holds, device, stream);
  submitter.Pass();
  return holds->WaitedNs() - before < kLong;
}

TEST_CASE("a process's hint is the highest of its own and its streams'") {
  Hint<int> hint(std::nullopt);
  CHECK(hint.Highest() == std::nullopt);
  CHECK(hint.SetStream(kOne, -5));
  CHECK(hint.Highest() == -5);
  CHECK(hint.Set(20));
  CHECK(hint.Highest() == 20);
  CHECK_FALSE(hint.SetStream(kOther, 20));
  CHECK(hint.SetStream(kOther, 30));
  CHECK(hint.OfProcess() == 20);
  CHECK(hint.Highest() == 30);
  CHECK_FALSE(hint.SetStream(kOne, std::nullopt));
  CHECK(hint.SetStream(kOther, std::nullopt));
  CHECK_FALSE(hint.HasStreams());
  CHECK(hint.Set(std::nullopt));
  CHECK(hint.Highest() == std::nullopt);
}

TEST_CASE("without its own hint a process has the environment's") {
  Hint<int> hint(7);
  CHECK(hint.Highest() == 7);
  CHECK_FALSE(hint.Set(7));
  CHECK(hint.Set(-3));
  CHECK(hint.Set(std::nullopt));
  CHECK(hint.OfProcess() == 7);
}

TEST_CASE("held submissions wait until the release, and no others wait") {
  OwnHolds holds;
  CHECK_FALSE(holds.Any());
  const std::uint64_t until = MonotonicNs() + kLong;

  SECTION("a device") {
    holds.HoldDevice(1, until);
    CHECK(holds.Any());
    CHECK(Passes(&holds, 0, kOne));
    Submitter submitter(&holds, 1, kOne);
    CHECK(Passes(&holds, 2, kOne));
    CHECK_FALSE(submitter.HasPassed());
    holds.ReleaseDevice(1);
    submitter.Pass();
  }
  SECTION("a stream") {
    holds.HoldStream(kOne, until);
    Submitter submitter(&holds, 0, kOne);
    CHECK(Passes(&holds, 0, kOther));
    CHECK_FALSE(submitter.HasPassed());
    holds.ReleaseStream(kOne);
    submitter.Pass();
  }
  SECTION("everything, and everything is released at once") {
    holds.HoldDevice(OwnHolds::kAllDevices, until);
    holds.HoldDevice(0, until);
    holds.HoldStream(kOne, until);
    Submitter submitter(&holds, 0, kOne);
    holds.ReleaseDevice(0);
    holds.ReleaseStream(kOne);
    std::this_thread::yield();
    CHECK_FALSE(submitter.HasPassed());
    holds.HoldStream(kOne, until);
    holds.ReleaseDevice(OwnHolds::kAllDevices);
    submitter.Pass();
  }
  CHECK_FALSE(holds.Any());
}

TEST_CASE("a hold ends by itself") {
  OwnHolds holds;
  holds.HoldDevice(OwnHolds::kAllDevices, MonotonicNs() + kShort);
  CHECK(holds.Wait(0, kOne));
  CHECK_FALSE(holds.Any());

  // A hold that has ended does not end another one.
  holds.HoldStream(kOne, MonotonicNs() + kLong);
  holds.HoldDevice(0, MonotonicNs() + kShort);
  CHECK_FALSE(holds.Wait(0, kOther));
  CHECK(holds.Any());
  // A second hold of the same object replaces its duration.
  holds.HoldStream(kOne, MonotonicNs() + kShort);
  CHECK(holds.Wait(0, kOne));
}

}  // namespace
}  // namespace xschedd::shim
