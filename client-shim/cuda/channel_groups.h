// The channel groups of this process, learnt from the ioctls by which libcuda makes them, and their time slices.
//
// A channel group is what the device's own scheduling between processes works on: it has the device until its time
// slice is over, if another has work, and is then preempted inside a kernel. A group is made by an ioctl of the
// resource manager (NV_ESC_RM_ALLOC, class KEPLER_CHANNEL_GROUP_A), and who holds its handles may set its time slice
// (NVA06C_CTRL_CMD_SET_TIMESLICE), without privilege. Sources: nvos.h, nv_escape.h, ctrla06c.h and nvstatuscodes.h of
// NVIDIA's open kernel modules; seen to work on an H200 with driver 580. A slice ends with its group: nothing of the
// device is changed.
//
// What is not known is left alone: groups beyond kMaxGroups, those made before this object was there, in another
// process (MPS), or past the dynamic symbol. Entries of a parent are not used in a child of fork, which has its
// descriptors but not its groups.
//
// Thread rule: Note from any thread and in a signal handler: no lock, no allocation; with a group that is made or freed
// two system calls, else none. SetTimeSlice one thread at a time. Both keep errno.
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

  // Whether an ioctl may make or free a group: one comparison for all others. By type and number alone.
  [[gnu::always_inline]] static bool Concerns(unsigned long request) {
    // NV_ESC_RM_ALLOC and NV_ESC_RM_FREE differ in one bit.
    return ((request | (kAlloc ^ kFree)) & 0xffff) == ((kType << 8) | kAlloc);
  }
  // Of an ioctl that concerns us: `argument` as it is after the call, which returned 0.
  void Note(int fd, unsigned long request, const void* argument);

  // Vendor::set_time_slice. `ioctl` reaches the driver.
  SliceReport SetTimeSlice(uint32_t us, IoctlFunction ioctl);

 private:
  static constexpr unsigned kType = 'F';
  static constexpr unsigned kFree = 0x29;
  static constexpr unsigned kControl = 0x2a;
  static constexpr unsigned kAlloc = 0x2b;

  // What an entry says. A descriptor's number may come to lead elsewhere, so it goes with what it led to.
  struct Group {
    int fd;
    pid_t pid;
    uint32_t client;
    uint32_t object;
    uint64_t device;
    uint64_t inode;
  };
  // Its turn is in `state`: the stage, and above it a number that changes with each group that the entry is used for.
  // Written by whoever has made it kFilling. Readers copy and look at the state again (a seqlock).
  struct Entry {
    std::atomic<uint32_t> state;
    std::atomic<int> fd;
    std::atomic<pid_t> pid;
    std::atomic<uint32_t> client;
    std::atomic<uint32_t> object;
    std::atomic<uint64_t> device;
    std::atomic<uint64_t> inode;
    // SetTimeSlice's own, for the group of `known_state`:
    uint32_t known_state = 0;
    uint32_t set_us = 0;     // what we have set; 0: nothing
    uint64_t before_us = 0;  // what it had before that
  };
  enum Stage : uint32_t { kEmpty = 0, kFilling = 1, kLive = 2, kStageMask = 3, kNextGroup = 4 };
  enum class Answer { kOk, kRefused, kGone };

  void Add(int fd, uint32_t client, uint32_t object);
  void Forget(uint32_t client, uint32_t object);
  static void Forget(Entry* entry, uint32_t state);
  // False: it holds no group at the moment.
  static bool Copy(const Entry& entry, uint32_t* state, Group* out);
  static Answer Control(const Group& group, uint32_t command, uint64_t* value, IoctlFunction ioctl);
  static Answer Apply(Entry* entry, const Group& group, uint32_t us, IoctlFunction ioctl);

  Entry entries_[kMaxGroups];
};

extern ChannelGroups g_channel_groups;

}  // namespace xschedd::shim::cuda
