// The channel groups of this process, known from the ioctls by which libcuda makes them, and their time slices.
//
// Channel groups are what the device schedules between processes: if another one has work, a group has the device until
// its time slice ends, and is then preempted, even inside a kernel. A group is made by an ioctl of the resource manager
// (NV_ESC_RM_ALLOC, class KEPLER_CHANNEL_GROUP_A), and whoever has its handles may set its time slice
// (NVA06C_CTRL_CMD_SET_TIMESLICE) without privilege. Sources: nvos.h, nv_escape.h, ctrla06c.h and nvstatuscodes.h of
// NVIDIA's open kernel modules; seen to work on an H200 with driver 580. The slice is the group's, so nothing of the
// device is changed.
//
// Unknown groups are left alone: those beyond kMaxGroups, and those made before this object was loaded, in another
// process (MPS), or without the dynamic symbol. A child of fork has its parent's descriptors, but not its groups, so it
// does not use the parent's entries.
//
// Thread rule: Note, any thread and in a signal handler: no lock, no allocation; two system calls if a group was made,
// else none. SetTimeSlice, one thread at a time. Both keep errno.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <atomic>

#include "client-shim/core/interface.h"

namespace xschedd::shim::cuda {

using IoctlFunction = int (*)(int fd, unsigned long request, ...);

class ChannelGroups {
 public:
  static constexpr int kMaxGroups = 64;  // a PyTorch process has four

  // Whether an ioctl may make or free a group, by its type and number. All others cost one comparison.
  [[gnu::always_inline]] static bool Concerns(unsigned long request) {
    // NV_ESC_RM_ALLOC and NV_ESC_RM_FREE differ in one bit.
    return ((request | (kAlloc ^ kFree)) & 0xffff) == ((kType << 8) | kAlloc);
  }
  // After such an ioctl has returned 0: `argument` as it is after the call.
  void Note(int fd, unsigned long request, const void* argument);

  // Vendor::set_time_slice. `ioctl` reaches the driver.
  SliceReport SetTimeSlice(uint32_t us, IoctlFunction ioctl);

 private:
  static constexpr unsigned kType = 'F';
  static constexpr unsigned kFree = 0x29;
  static constexpr unsigned kControl = 0x2a;
  static constexpr unsigned kAlloc = 0x2b;

  // The value of an entry. A descriptor's number may be reused, so it comes with the identity of its file.
  struct Group {
    int fd;
    pid_t pid;
    uint32_t client;
    uint32_t object;
    uint64_t device;
    uint64_t inode;
  };
  // A seqlock. `state` has the stage and, above it, a number that changes with each group in the entry. The thread that
  // has set kFilling writes the values. Readers copy them and check that the state has not changed.
  struct Entry {
    std::atomic<uint32_t> state;
    std::atomic<int> fd;
    std::atomic<pid_t> pid;
    std::atomic<uint32_t> client;
    std::atomic<uint32_t> object;
    std::atomic<uint64_t> device;
    std::atomic<uint64_t> inode;
    // Used by SetTimeSlice only, for the group of `known_state`:
    uint32_t known_state = 0;
    uint32_t set_us = 0;     // our slice; 0: none is set
    uint64_t before_us = 0;  // the slice before ours
  };
  enum Stage : uint32_t { kEmpty = 0, kFilling = 1, kLive = 2, kStageMask = 3, kNextGroup = 4 };
  enum class Answer { kOk, kRefused, kGone };

  void Add(int fd, uint32_t client, uint32_t object);
  void Forget(uint32_t client, uint32_t object);
  static void Forget(Entry* entry, uint32_t state);
  // False: the entry has no group at the moment.
  static bool Copy(const Entry& entry, uint32_t* state, Group* out);
  static Answer Control(const Group& group, uint32_t command, uint64_t* value, IoctlFunction ioctl);
  static Answer Apply(Entry* entry, const Group& group, uint32_t us, IoctlFunction ioctl);

  Entry entries_[kMaxGroups];
};

extern ChannelGroups g_channel_groups;

}  // namespace xschedd::shim::cuda
