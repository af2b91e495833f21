// The shared memory object /dev/shm/softgpu.<name> through which processes share devices: the processes, how much
// memory of each device each of them has, and the calendars.
//
// Life: made by the first process that attaches, mode 0600; the last user to leave removes it. Processes that die
// without leaving are removed by the next one that attaches or leaves, and by `softgpuctl clean`. Attaching and leaving
// hold flock() on the object, which the kernel releases when its holder dies. Trust: only processes of the same user
// can open it; its content is not defended against them. Thread rule: attach and leave from one thread; the rest from
// any thread of any process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "tools/softgpu/model/calendar.h"
#include "tools/softgpu/model/settings.h"

namespace softgpu {

inline constexpr uint32_t kMaxUsers = 1024;
inline constexpr uint32_t kCopyEngines = 2;  // 0: to the device, 1: from the device

struct User {
  std::atomic<int32_t> pid;             // 0: free
  std::atomic<uint64_t> process_start;  // distinguishes a reused pid
  std::atomic<uint64_t> vram_bytes[kMaxDevices];
};

struct SharedDevice {
  Calendar compute;
  Calendar copy[kCopyEngines];
};

struct RegionLayout {
  std::atomic<uint64_t> magic;  // set last when the object is made: kRegionMagic
  uint32_t layout_size;
  uint32_t compute_units;
  User users[kMaxUsers];
  SharedDevice devices[kMaxDevices];
};

class Region {
 public:
  // Returns an empty string and attaches, or one line that says why not.
  std::string attach(const std::string& name, uint32_t compute_units);
  void leave();

  uint32_t compute_units() const { return layout_->compute_units; }
  SharedDevice& device(uint32_t ordinal) { return layout_->devices[ordinal]; }

  // Books `bytes` of a device's memory for this process; false if the device does not have that much left.
  bool reserve_vram(uint32_t device, uint64_t bytes, uint64_t capacity);
  void release_vram(uint32_t device, uint64_t bytes);
  uint64_t vram_in_use(uint32_t device) const;

  // Removes the object unless a live process uses it. Returns the number of live users, or -1 when there is no such
  // object.
  static int clean(const std::string& name);
  // The same count, without removing anything.
  static int live_users(const std::string& name);
  static std::string object_name(const std::string& name) { return "/softgpu." + name; }

 private:
  int fd_ = -1;
  std::string name_;
  RegionLayout* layout_ = nullptr;
  User* self_ = nullptr;
};

}  // namespace softgpu
