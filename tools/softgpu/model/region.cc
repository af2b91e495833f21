#include "tools/softgpu/model/region.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace softgpu {

namespace {

constexpr uint64_t kRegionMagic = 0x53'4f'46'54'47'50'55'01;  // "SOFTGPU", version 1

// Start time of a process in clock ticks since boot (field 22 of /proc/pid/stat); 0 when there is no such process.
uint64_t process_start(int32_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  char text[1024];
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = '\0';
  // The command name, in parentheses, may hold anything; what follows its last parenthesis is regular.
  const char* p = std::strrchr(text, ')');
  char state = 0;
  unsigned long long start = 0;
  if (p == nullptr ||
      std::sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
                  &start) != 2) {
    return 0;
  }
  // A zombie has left; only its parent has not yet collected its status.
  return state == 'Z' || state == 'X' ? 0 : start;
}

// Memory order: users are added and removed only under flock, a full barrier; other readers only sum numbers.
constexpr auto kRelaxed = std::memory_order_relaxed;

bool is_live(const User& user) {
  const int32_t pid = user.pid.load(kRelaxed);
  return pid != 0 && process_start(pid) == user.process_start.load(kRelaxed);
}

void remove_user(User& user) {
  for (auto& bytes : user.vram_bytes)
    bytes.store(0, kRelaxed);
  user.pid.store(0, kRelaxed);
}

// Removes dead users; returns the number of live users.
int reap(RegionLayout& layout) {
  int live = 0;
  for (User& user : layout.users) {
    if (user.pid.load(kRelaxed) == 0) continue;
    if (is_live(user)) {
      ++live;
    } else {
      remove_user(user);
    }
  }
  return live;
}

RegionLayout* map(int fd) {
  void* p = mmap(nullptr, sizeof(RegionLayout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return p == MAP_FAILED ? nullptr : static_cast<RegionLayout*>(p);
}

// True if the object still has its name, so was not removed between open and flock.
bool still_linked(int fd) {
  struct stat st {};
  return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

bool is_made(int fd) {
  struct stat st {};
  return fstat(fd, &st) == 0 && st.st_size == static_cast<off_t>(sizeof(RegionLayout));
}

}  // namespace

std::string Region::attach(const std::string& name, uint32_t compute_units) {
  name_ = object_name(name);
  const auto failed = [&](const char* what, const char* remedy) {
    std::string message = "/dev/shm" + name_ + ": " + what + ": " + std::strerror(errno) + "; " + remedy;
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
    return message;
  };
  for (;;) {
    fd_ = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) return failed("cannot open", "choose another SOFTGPU_NAME if it belongs to another user");
    while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
    if (still_linked(fd_)) break;
    close(fd_);
  }
  const bool fresh = !is_made(fd_);
  // A creator that died halfway leaves an object without the magic number, which is made again from zero.
  if (fresh && (ftruncate(fd_, 0) != 0 || ftruncate(fd_, sizeof(RegionLayout)) != 0)) {
    return failed("cannot size", "free some memory in /dev/shm");
  }
  layout_ = map(fd_);
  if (layout_ == nullptr) return failed("cannot map", "raise the limit on address space");
  // acquire: pairs with the release of the process that made the object.
  if (layout_->magic.load(std::memory_order_acquire) != kRegionMagic) {
    if (!fresh && layout_->magic.load(std::memory_order_relaxed) != 0) {
      munmap(layout_, sizeof(RegionLayout));
      layout_ = nullptr;
      errno = EPROTO;
      return failed("made by another version", "end its users and run 'softgpuctl clean'");
    }
    layout_->layout_size = sizeof(RegionLayout);
    layout_->compute_units = compute_units;
    for (SharedDevice& device : layout_->devices) {
      device.compute.init(compute_units);
      for (Calendar& engine : device.copy)
        engine.init(1);
    }
    layout_->magic.store(kRegionMagic, std::memory_order_release);
  }
  reap(*layout_);
  for (User& user : layout_->users) {
    if (user.pid.load(kRelaxed) != 0) continue;
    user.process_start.store(process_start(getpid()), kRelaxed);
    user.pid.store(getpid(), kRelaxed);
    self_ = &user;
    break;
  }
  flock(fd_, LOCK_UN);
  if (self_ == nullptr) {
    errno = EUSERS;
    return failed("too many processes share it", "use several SOFTGPU_NAMEs");
  }
  return "";
}

void Region::leave() {
  if (self_ == nullptr) return;
  while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
  }
  remove_user(*self_);
  self_ = nullptr;
  if (reap(*layout_) == 0 && still_linked(fd_)) shm_unlink(name_.c_str());
  flock(fd_, LOCK_UN);
  // The mapping stays: threads of this process may still be in a calendar.
}

bool Region::reserve_vram(uint32_t device, uint64_t bytes, uint64_t capacity) {
  if (self_ == nullptr) return false;
  // Adding first and checking afterwards ensures that two processes cannot both take the last bytes.
  self_->vram_bytes[device].fetch_add(bytes, std::memory_order_seq_cst);
  if (vram_in_use(device) <= capacity) return true;
  release_vram(device, bytes);
  return false;
}

void Region::release_vram(uint32_t device, uint64_t bytes) {
  if (self_ != nullptr) self_->vram_bytes[device].fetch_sub(bytes, std::memory_order_seq_cst);
}

uint64_t Region::vram_in_use(uint32_t device) const {
  uint64_t sum = 0;
  for (const User& user : layout_->users) {
    // seq_cst: see reserve_vram.
    if (user.pid.load(kRelaxed) != 0) sum += user.vram_bytes[device].load(std::memory_order_seq_cst);
  }
  return sum;
}

namespace {

int inspect(const std::string& name, bool remove_unused) {
  const std::string object = Region::object_name(name);
  const int fd = shm_open(object.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) return -1;
  while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {
  }
  int live = 0;
  if (is_made(fd)) {
    RegionLayout* layout = map(fd);
    if (layout != nullptr) {
      // acquire: as in attach.
      const bool known = layout->magic.load(std::memory_order_acquire) == kRegionMagic;
      if (known) live = reap(*layout);
      munmap(layout, sizeof(RegionLayout));
    }
  }
  if (remove_unused && live == 0 && still_linked(fd)) shm_unlink(object.c_str());
  close(fd);
  return live;
}

}  // namespace

int Region::clean(const std::string& name) {
  return inspect(name, true);
}
int Region::live_users(const std::string& name) {
  return inspect(name, false);
}

}  // namespace softgpu
