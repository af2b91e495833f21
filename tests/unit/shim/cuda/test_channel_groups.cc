// Channel groups learnt from ioctls, and their time slices, with a fake resource manager.
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <map>
#include <thread>
#include <vector>

#include "client-shim/cuda/channel_groups.h"
#include "tests/catch.h"

using namespace xschedd::shim;
using namespace xschedd::shim::cuda;

namespace {

// The words of the driver's structures, as nvos.h has them.
using Words = std::array<std::uint32_t, 12>;
constexpr unsigned long kAlloc = _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 48);
constexpr unsigned long kOlderAlloc = _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 32);
constexpr unsigned long kFree = _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x29, 16);
constexpr unsigned long kControl = _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, 32);
constexpr std::uint32_t kClass = 0xa06c;
constexpr std::uint32_t kClient = 0xc1d00001;

Words Allocation(std::uint32_t object, std::uint32_t type = kClass, std::uint32_t status = 0) {
  Words words{kClient, 0xd0, object, type};
  words[10] = status;
  return words;
}
Words OlderAllocation(std::uint32_t object, std::uint32_t status = 0) {
  Words words{kClient, 0xd0, object, kClass};
  words[7] = status;
  return words;
}

struct Driver {
  std::map<std::uint32_t, std::uint64_t> slices;  // by object
  std::vector<std::uint64_t> sets;
  int calls = 0;
  std::uint32_t refuses = 0;  // a status for each control
  int fails = 0;              // an errno for each ioctl
  bool ignores = false;       // succeeds and does nothing
};
Driver* g_driver = nullptr;

int Ioctl(int, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  auto* const words = va_arg(list, std::uint32_t*);
  va_end(list);
  REQUIRE(request == kControl);
  ++g_driver->calls;
  if (g_driver->fails != 0) {
    errno = g_driver->fails;
    return -1;
  }
  errno = EAGAIN;  // errors of the shim's calls must not be visible to the program
  REQUIRE(words[0] == kClient);
  REQUIRE(words[6] == 8);
  auto* const value = *reinterpret_cast<std::uint64_t**>(&words[4]);
  const auto found = g_driver->slices.find(words[1]);
  words[7] = found == g_driver->slices.end() ? 0x33 : g_driver->refuses;
  if (words[7] != 0) return 0;
  if (words[2] == 0xa06c0104) {
    *value = found->second;
  } else {
    REQUIRE(words[2] == 0xa06c0103);
    g_driver->sets.push_back(*value);
    if (!g_driver->ignores) found->second = *value;
  }
  return 0;
}

struct World {
  World() { g_driver = &driver; }
  ~World() { ::close(fd); }
  void Make(std::uint32_t object, std::uint64_t slice) {
    driver.slices[object] = slice;
    const Words words = Allocation(object);
    groups.Note(fd, kAlloc, words.data());
  }
  void Free(std::uint32_t object) {
    driver.slices.erase(object);
    const Words words{kClient, 0xd0, object, 0};
    groups.Note(fd, kFree, words.data());
  }
  SliceReport Set(std::uint32_t us) { return groups.SetTimeSlice(us, Ioctl); }

  Driver driver;
  ChannelGroups groups{};
  int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
};

}  // namespace

TEST_CASE("only allocations and frees of the resource manager are read") {
  for (const unsigned long request : {kAlloc, kOlderAlloc, kFree}) {
    CHECK(ChannelGroups::Concerns(request));
    CHECK(ChannelGroups::Concerns(request | 0xffffffff00000000));  // an int that was widened
  }
  for (const unsigned long request :
       {kControl, static_cast<unsigned long>(_IO('F', 0x28)), static_cast<unsigned long>(TIOCGWINSZ),
        static_cast<unsigned long>(FIONREAD), static_cast<unsigned long>(_IOWR('G', 0x2b, Words)), 0ul}) {
    CHECK_FALSE(ChannelGroups::Concerns(request));
  }
}

TEST_CASE("a slice is set on each group, read back, and restored at the end") {
  World world;
  CHECK(world.Set(200) == SliceReport{0, 0});
  world.Make(1, 2048);
  world.Make(2, 1024);
  const Words older = OlderAllocation(3);
  world.driver.slices[3] = 1024;
  world.groups.Note(world.fd, kOlderAlloc, older.data());
  errno = ENOENT;
  CHECK(world.Set(200) == SliceReport{3, 3});
  CHECK(errno == ENOENT);
  CHECK(world.driver.slices == std::map<std::uint32_t, std::uint64_t>{{1, 200}, {2, 200}, {3, 200}});

  SECTION("only groups that differ are set") {
    world.driver.sets.clear();
    CHECK(world.Set(200) == SliceReport{3, 3});
    CHECK(world.driver.sets.empty());
    CHECK(world.Set(20'000) == SliceReport{3, 3});
    CHECK(world.driver.sets == std::vector<std::uint64_t>{20'000, 20'000, 20'000});
  }
  SECTION("a later value of the runtime is replaced, and restored at the end") {
    world.driver.slices[2] = 2048;
    CHECK(world.Set(200) == SliceReport{3, 3});
    CHECK(world.driver.slices[2] == 200);
    CHECK(world.Set(0) == SliceReport{3, 3});
    CHECK(world.driver.slices == std::map<std::uint32_t, std::uint64_t>{{1, 2048}, {2, 2048}, {3, 1024}});
  }
  SECTION("a value that another program has set since stays") {
    world.driver.slices[1] = 5000;
    world.driver.sets.clear();
    CHECK(world.Set(0) == SliceReport{3, 3});
    CHECK(world.driver.slices == std::map<std::uint32_t, std::uint64_t>{{1, 5000}, {2, 1024}, {3, 1024}});
    CHECK(world.driver.sets.size() == 2);
    world.driver.sets.clear();
    CHECK(world.Set(0) == SliceReport{3, 3});  // once
    CHECK(world.driver.sets.empty());
  }
  SECTION("a freed group is forgotten, and its handle may be reused") {
    world.Free(2);
    CHECK(world.Set(200) == SliceReport{2, 2});
    world.Make(2, 4096);
    CHECK(world.Set(200) == SliceReport{3, 3});
    CHECK(world.Set(0) == SliceReport{3, 3});
    CHECK(world.driver.slices[2] == 4096);
  }
  SECTION("a group that was freed unnoticed is forgotten when the driver does not know it") {
    world.driver.slices.erase(1);
    CHECK(world.Set(200) == SliceReport{2, 2});
    const int calls = world.driver.calls;
    CHECK(world.Set(200) == SliceReport{2, 2});
    CHECK(world.driver.calls == calls + 2);
  }
  SECTION("groups are forgotten with their client") {
    const Words words{kClient, 0, kClient, 0};
    world.groups.Note(world.fd, kFree, words.data());
    CHECK(world.Set(200) == SliceReport{0, 0});
  }
}

TEST_CASE("objects other than groups are not remembered") {
  World world;
  const Words other = Allocation(1, 0x80);
  const Words failed = Allocation(2, kClass, 0x51);
  const Words older_failed = OlderAllocation(3, 0x51);
  const Words foreign = Allocation(4);
  world.groups.Note(world.fd, kAlloc, other.data());
  world.groups.Note(world.fd, kAlloc, failed.data());
  world.groups.Note(world.fd, kOlderAlloc, older_failed.data());
  world.groups.Note(world.fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 40), foreign.data());
  world.groups.Note(world.fd, kAlloc, nullptr);
  world.groups.Note(-1, kAlloc, foreign.data());
  CHECK(world.Set(200) == SliceReport{0, 0});
  CHECK(world.driver.calls == 0);
}

TEST_CASE("a driver that refuses, or does nothing, is noticed") {
  World world;
  world.Make(1, 2048);
  SECTION("refuses the control") {
    world.driver.refuses = 0x56;
    CHECK(world.Set(200) == SliceReport{1, 0});
    world.driver.refuses = 0;
    CHECK(world.Set(200) == SliceReport{1, 1});
  }
  SECTION("does not know the ioctl, as a sandbox") {
    world.driver.fails = EINVAL;
    CHECK(world.Set(200) == SliceReport{1, 0});
    CHECK(world.Set(0) == SliceReport{1, 0});
  }
  SECTION("succeeds without effect") {
    world.driver.ignores = true;
    CHECK(world.Set(200) == SliceReport{1, 0});
    CHECK(world.Set(0) == SliceReport{1, 1});
    CHECK(world.driver.slices[1] == 2048);
  }
  SECTION("is no longer a driver") {
    world.driver.fails = ENOTTY;
    CHECK(world.Set(200) == SliceReport{0, 0});
  }
}

TEST_CASE("a descriptor that was reused for another file is not used") {
  World world;
  world.Make(1, 2048);
  const int other = ::open("/dev/zero", O_RDWR | O_CLOEXEC);
  REQUIRE(::dup2(other, world.fd) == world.fd);
  ::close(other);
  CHECK(world.Set(200) == SliceReport{0, 0});
  CHECK(world.driver.calls == 0);
}

TEST_CASE("a child of fork has no groups") {
  World world;
  world.Make(1, 2048);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(world.Set(200) == SliceReport{0, 0} && world.driver.calls == 0 ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(world.Set(200) == SliceReport{1, 1});
}

TEST_CASE("calls that do not match are passed on") {
  World world;
  for (std::uint32_t object = 1; object <= ChannelGroups::kMaxGroups + 5; ++object)
    world.Make(object, 1024);
  CHECK(world.Set(200) == SliceReport{ChannelGroups::kMaxGroups, ChannelGroups::kMaxGroups});
  for (std::uint32_t object = 1; object <= 10; ++object)
    world.Free(object);
  for (std::uint32_t object = 200; object < 210; ++object)
    world.Make(object, 1024);
  CHECK(world.Set(200) == SliceReport{ChannelGroups::kMaxGroups, ChannelGroups::kMaxGroups});
}

TEST_CASE("groups come and go on several threads while one sets slices") {
  World world;
  // Constant while they run: the driver knows all handles, so none is forgotten.
  for (std::uint32_t object = 1; object <= 400; ++object)
    world.driver.slices[object] = 1024;
  std::atomic<int> running{4};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 200; ++round) {
        for (std::uint32_t i = 1; i <= 10; ++i) {
          const Words made = Allocation(thread * 100 + i);
          world.groups.Note(world.fd, kAlloc, made.data());
        }
        for (std::uint32_t i = 1; i <= 9; ++i) {
          const Words freed{kClient, 0xd0, thread * 100 + i, 0};
          world.groups.Note(world.fd, kFree, freed.data());
        }
      }
      running.fetch_sub(1);
    });
  }
  while (running.load() != 0) {
    const SliceReport report = world.Set(200);
    CHECK(report.groups == report.in_force);
    CHECK(report.groups <= 40);
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(world.Set(200) == SliceReport{4, 4});
}
