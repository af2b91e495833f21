// The account of device memory: what counts, what is refused, and that two threads cannot both get the last bytes.
#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "client-shim/core/memory_account.h"
#include "tests/catch.h"

namespace xschedd::shim {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

class World {
 public:
  // One allocation as a wrapper makes it. False: refused.
  bool Allocate(std::uint64_t handle, std::uint64_t bytes, std::uint64_t limit = 0, bool is_pooled = false,
                std::uint64_t kept_by_pools = 0, const void* owner = nullptr) {
    const MemoryCost cost{0, is_pooled, bytes, owner};
    if (!account.Reserve(cost, limit, kept_by_pools)) return false;
    account.Keep(cost, handle, bytes);
    return true;
  }
  bool AllocatePhysical(std::uint64_t handle, std::uint64_t bytes, std::uint64_t limit = 0) {
    const MemoryCost cost{0, false, bytes, nullptr};
    if (!account.Reserve(cost, limit, 0)) return false;
    account.KeepPhysical(cost, handle, bytes);
    return true;
  }
  bool Free(std::uint64_t handle) {
    const auto taken = account.Take(handle);
    if (taken) account.Freed(*taken);
    return taken.has_value();
  }
  void Release(std::uint64_t handle, bool has_succeeded = true) {
    if (auto* const physical = account.Releasing(handle)) account.Released(physical, has_succeeded);
  }
  std::uint64_t Bytes(std::uint32_t slot = 0) const { return account.Use(slot).Bytes(); }

  MemoryUse published[2];
  MemoryAccount account{[this](std::uint32_t slot, const MemoryUse& use) { published[slot] = use; }};
};

TEST_CASE("allocations add up, and a free takes its own away", "[memory]") {
  World world;
  CHECK(world.Allocate(1, 100));
  CHECK(world.Allocate(2, 50));
  CHECK(world.Bytes() == 150);
  CHECK(world.Free(1));
  CHECK(world.Bytes() == 50);
  CHECK_FALSE(world.Free(1));  // twice, or never ours: the runtime says so
  CHECK_FALSE(world.Free(77));
  CHECK(world.Bytes() == 50);
  CHECK(world.published[0].Bytes() == 50);
}

TEST_CASE("what would go above the limit is refused, and fits after a free", "[memory]") {
  World world;
  CHECK(world.Allocate(1, 6 * kGiB, 8 * kGiB));
  CHECK_FALSE(world.Allocate(2, 2 * kGiB + 1, 8 * kGiB));
  CHECK(world.Bytes() == 6 * kGiB);
  CHECK(world.Allocate(2, 2 * kGiB, 8 * kGiB));  // to the last byte
  CHECK_FALSE(world.Allocate(3, 1, 8 * kGiB));
  CHECK(world.Allocate(4, 0, 8 * kGiB));
  CHECK(world.Free(1));
  CHECK(world.Allocate(3, 6 * kGiB, 8 * kGiB));
}

TEST_CASE("a limit that came later takes nothing away", "[memory]") {
  World world;
  CHECK(world.Allocate(1, 10 * kGiB));
  CHECK_FALSE(world.Allocate(2, 1, 8 * kGiB));
  CHECK(world.Bytes() == 10 * kGiB);
  CHECK(world.Free(1));
  CHECK(world.Allocate(2, 8 * kGiB, 8 * kGiB));
}

TEST_CASE("sizes that no device has do not overflow", "[memory]") {
  World world;
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t hostile : {most, most - 1, most / 2, std::uint64_t{1} << 63}) {
    CHECK_FALSE(world.Allocate(1, hostile, 8 * kGiB));
    CHECK_FALSE(world.Allocate(1, hostile, hostile - 1));
    // Without a limit the runtime refuses it, from several threads at once.
    const MemoryCost cost{0, false, hostile, nullptr};
    for (int i = 0; i < 100; ++i)
      REQUIRE(world.account.Reserve(cost, 0, 0));
    CHECK_FALSE(world.Allocate(2, 1, 8 * kGiB));
    for (int i = 0; i < 100; ++i)
      world.account.Return(cost);
    CHECK(world.Bytes() == 0);
  }
  CHECK(world.Allocate(1, kGiB, 8 * kGiB));
  CHECK_FALSE(world.Allocate(2, 1, 8 * kGiB, false, most));  // pools that say nonsense
  CHECK(world.Allocate(2, 1, 8 * kGiB));
}

TEST_CASE("a size that the runtime rounded up counts as it came out", "[memory]") {
  World world;
  const MemoryCost cost{0, false, 1000, nullptr};
  REQUIRE(world.account.Reserve(cost, 2048, 0));
  world.account.Keep(cost, 1, 1024);
  CHECK(world.Bytes() == 1024);
  CHECK(world.Free(1));
  CHECK(world.Bytes() == 0);
}

TEST_CASE("a free that fails keeps its bytes, and counts until it has succeeded", "[memory]") {
  World world;
  CHECK(world.Allocate(1, 100));
  const auto taken = world.account.Take(1);
  REQUIRE(taken.has_value());
  CHECK(world.Bytes() == 100);
  world.account.PutBack(1, *taken);
  CHECK(world.Free(1));
  CHECK(world.Bytes() == 0);
}

TEST_CASE("an address that is given again stands for its new memory only", "[memory]") {
  World world;
  CHECK(world.Allocate(1, 100));
  // Its free is under way while the next call gets the address.
  const auto taken = world.account.Take(1);
  CHECK(world.Allocate(1, 30));
  world.account.Freed(*taken);
  CHECK(world.Bytes() == 30);
  // Its free was not seen.
  CHECK(world.Allocate(1, 70));
  CHECK(world.Bytes() == 70);
}

TEST_CASE("pools count as what they handed out or keep, whichever is more", "[memory]") {
  World world;
  CHECK(world.Allocate(1, 2 * kGiB, 8 * kGiB));
  CHECK(world.Allocate(2, 4 * kGiB, 8 * kGiB, true, 4 * kGiB));
  CHECK(world.Free(2));
  CHECK(world.Bytes() == 2 * kGiB);
  // The pool keeps what it has: no room for others, but for itself.
  CHECK_FALSE(world.Allocate(3, 3 * kGiB, 8 * kGiB, false, 4 * kGiB));
  CHECK(world.Allocate(3, 4 * kGiB, 8 * kGiB, true, 4 * kGiB));
  CHECK_FALSE(world.Allocate(4, 2 * kGiB + 1, 8 * kGiB, true, 4 * kGiB));
  CHECK(world.Allocate(4, 2 * kGiB, 8 * kGiB, true, 4 * kGiB));
  CHECK(world.account.Use(0).BytesWith(5 * kGiB) == 8 * kGiB);
}

TEST_CASE("physical memory lives as long as a handle or a mapping", "[memory]") {
  World world;
  CHECK(world.AllocatePhysical(7, 100, 200));
  CHECK_FALSE(world.AllocatePhysical(8, 101, 200));
  world.account.Map(0x1000, 100, 7);
  world.Release(7);
  CHECK(world.Bytes() == 100);  // mapped
  world.account.Unmap(0x1000, 100);
  CHECK(world.Bytes() == 0);

  CHECK(world.AllocatePhysical(7, 60));
  world.account.Retain(7);
  world.account.Map(0x1000, 60, 7);
  world.account.Map(0x2000, 60, 7);
  world.Release(7);
  world.account.Unmap(0x1000, 0x1000 + 60);  // both at once
  CHECK(world.Bytes() == 60);                // one handle is left
  world.Release(7, false);
  CHECK(world.Bytes() == 60);
  world.Release(7);
  CHECK(world.Bytes() == 0);
  world.Release(7);  // the runtime refuses it
  world.account.Unmap(0x1000, 60);
  world.account.Map(0x1000, 60, 99);  // another process's memory, by an import
  world.account.Unmap(0x1000, 60);
  CHECK(world.Bytes() == 0);
}

TEST_CASE("a handle that is given again while its release is under way is another's", "[memory]") {
  World world;
  CHECK(world.AllocatePhysical(7, 100));
  auto* const releasing = world.account.Releasing(7);
  REQUIRE(releasing != nullptr);
  CHECK(world.AllocatePhysical(7, 30));
  world.account.Released(releasing, true);
  CHECK(world.Bytes() == 30);
  world.Release(7);
  CHECK(world.Bytes() == 0);
  // A handle whose release was not seen.
  CHECK(world.AllocatePhysical(7, 100));
  CHECK(world.AllocatePhysical(7, 40));
  CHECK(world.Bytes() == 40);
}

TEST_CASE("what goes with a context goes, and nothing else", "[memory]") {
  World world;
  const int first = 0, second = 0;
  CHECK(world.Allocate(1, 100, 0, false, 0, &first));
  CHECK(world.Allocate(2, 20, 0, true, 0, &second));
  CHECK(world.AllocatePhysical(3, 3));
  const MemoryCost elsewhere{1, false, 4, &first};
  REQUIRE(world.account.Reserve(elsewhere, 0, 0));
  world.account.Keep(elsewhere, 4, 4);
  world.account.Forget(0, &first);
  CHECK(world.Bytes() == 23);
  world.account.Forget(0, nullptr);
  CHECK(world.Bytes() == 3);
  CHECK(world.Bytes(1) == 4);
  CHECK_FALSE(world.Free(1));
  world.published[0] = world.published[1] = MemoryUse{};
  world.account.Publish();
  CHECK(world.published[0].Bytes() == 3);
  CHECK(world.published[1].Bytes() == 4);
}

TEST_CASE("refusals are counted beside the bytes", "[memory]") {
  World world;
  world.account.Refuse(1);
  world.account.Refuse(1);
  CHECK(world.account.Use(1).refused == 2);
  CHECK(world.published[1].refused == 2);
}

TEST_CASE("of threads that want the last bytes one gets them", "[memory]") {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  World world;
  std::atomic<std::uint64_t> most{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const auto handle = static_cast<std::uint64_t>(thread + 1);
      for (int round = 0; round < kRounds; ++round) {
        // Two fit at a time, three do not.
        if (!world.Allocate(handle, 40, 100)) continue;
        const std::uint64_t now = world.Bytes();
        for (std::uint64_t seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        world.Free(handle);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(most <= 100);
  CHECK(most >= 40);
  CHECK(world.Bytes() == 0);
  CHECK(world.published[0].Bytes() == 0);
}

}  // namespace
}  // namespace xschedd::shim
