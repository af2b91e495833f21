// The shared object: made by the first user, removed by the last; dead users are removed, and memory is accounted
// across processes.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/catch.h"
#include "tools/softgpu/model/clock.h"
#include "tools/softgpu/model/region.h"

using softgpu::Region;

namespace {

std::string unique_name() {
  return "unit-" + std::to_string(getpid()) + "-" + std::to_string(softgpu::now_ns());
}

std::string path_of(const std::string& name) {
  return "/dev/shm" + Region::object_name(name);
}

bool exists(const std::string& name) {
  return access(path_of(name).c_str(), F_OK) == 0;
}

// A process that has attached and booked memory, and waits to be ended.
pid_t start_user(const std::string& name, uint64_t vram) {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    Region region;
    if (!region.attach(name, 80).empty() || !region.reserve_vram(0, vram, UINT64_MAX)) _exit(1);
    (void)!write(ready[1], "r", 1);
    for (;;)
      pause();
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  return pid;
}

}  // namespace

TEST_CASE("the first user makes the object, private to its user; the last one removes it") {
  const std::string name = unique_name();
  CHECK(Region::live_users(name) == -1);
  Region first;
  REQUIRE(first.attach(name, 64) == "");
  struct stat st {};
  REQUIRE(stat(path_of(name).c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  Region second;
  REQUIRE(second.attach(name, 80) == "");
  CHECK(second.compute_units() == 64);
  CHECK(Region::live_users(name) == 2);
  first.leave();
  CHECK(exists(name));
  second.leave();
  CHECK_FALSE(exists(name));
}

TEST_CASE("users that were killed are removed, and their memory is freed") {
  const std::string name = unique_name();
  Region mine;
  REQUIRE(mine.attach(name, 80) == "");
  const pid_t pid = start_user(name, 1'000);
  CHECK(mine.vram_in_use(0) == 1'000);
  CHECK_FALSE(mine.reserve_vram(0, 500, 1'400));
  CHECK(mine.reserve_vram(0, 400, 1'400));
  kill(pid, SIGKILL);
  REQUIRE(waitpid(pid, nullptr, 0) == pid);
  Region other;
  REQUIRE(other.attach(name, 80) == "");
  CHECK(other.vram_in_use(0) == 400);
  CHECK(Region::live_users(name) == 2);
  other.leave();
  mine.leave();
  CHECK_FALSE(exists(name));
}

TEST_CASE("the object of a killed last user is removed, and no object in use is") {
  const std::string name = unique_name();
  const pid_t pid = start_user(name, 1);
  CHECK(Region::clean(name) == 1);
  CHECK(exists(name));
  kill(pid, SIGKILL);
  REQUIRE(waitpid(pid, nullptr, 0) == pid);
  CHECK(Region::clean(name) == 0);
  CHECK_FALSE(exists(name));
  CHECK(Region::clean(name) == -1);
}

TEST_CASE("an object whose maker died halfway is made anew; one of another version is refused") {
  const std::string name = unique_name();
  const int fd = open(path_of(name).c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(ftruncate(fd, 100) == 0);
  Region region;
  REQUIRE(region.attach(name, 80) == "");
  const uint64_t other_magic = 42;
  const int again = open(path_of(name).c_str(), O_RDWR);
  REQUIRE(pwrite(again, &other_magic, sizeof other_magic, 0) == sizeof other_magic);
  Region second;
  CHECK(second.attach(name, 80).find("another version") != std::string::npos);
  close(fd);
  close(again);
  unlink(path_of(name).c_str());
}
