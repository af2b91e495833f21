#include "client-shim/cuda/channel_groups.h"

#include <asm/ioctl.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace xschedd::shim::cuda {
namespace {

constexpr uint32_t kGroupClass = 0xa06c;        // KEPLER_CHANNEL_GROUP_A, which all later devices have, too
constexpr uint32_t kSetTimeSlice = 0xa06c0103;  // NVA06C_CTRL_CMD_SET_TIMESLICE
constexpr uint32_t kGetTimeSlice = 0xa06c0104;  // NVA06C_CTRL_CMD_GET_TIMESLICE
// NV_STATUS
constexpr uint32_t kOk = 0;
constexpr uint32_t kInvalidClient = 0x23;
constexpr uint32_t kInvalidObject = 0x31;
constexpr uint32_t kInvalidObjectHandle = 0x33;
constexpr uint32_t kObjectNotFound = 0x57;
constexpr uint32_t kResourceLost = 0x6e;

// NVOS64_PARAMETERS, and NVOS21_PARAMETERS, which older libraries use.
struct Allocation {
  uint32_t root;
  uint32_t parent;
  uint32_t object;
  uint32_t type;
  uint64_t parameters;
  uint64_t rights;
  uint32_t size;
  uint32_t flags;
  uint32_t status;
};
struct OlderAllocation {
  uint32_t root;
  uint32_t parent;
  uint32_t object;
  uint32_t type;
  uint64_t parameters;
  uint32_t size;
  uint32_t status;
};
struct Freeing {  // NVOS00_PARAMETERS
  uint32_t root;
  uint32_t parent;
  uint32_t object;
  uint32_t status;
};
struct Request {  // NVOS54_PARAMETERS
  uint32_t client;
  uint32_t object;
  uint32_t command;
  uint32_t flags;
  uint64_t parameters;
  uint32_t size;
  uint32_t status;
};
static_assert(sizeof(Allocation) == 48 && sizeof(OlderAllocation) == 32 && sizeof(Freeing) == 16 &&
              sizeof(Request) == 32);

// By syscall, because glibc's symbol fstat is newer than what the stub may need.
bool Identify(int fd, uint64_t* device, uint64_t* inode) {
  struct stat now;
  if (syscall(SYS_fstat, fd, &now) != 0) return false;
  *device = now.st_dev;
  *inode = now.st_ino;
  return true;
}

class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  const int saved_;
};

}  // namespace

constinit ChannelGroups g_channel_groups{};

// ---- the groups ----------------------------------------------------------------------------------------------------

void ChannelGroups::Note(int fd, unsigned long request, const void* argument) {
  const unsigned long size = _IOC_SIZE(request);
  if (argument == nullptr) return;
  if (_IOC_NR(request) == kFree) {
    const auto* const freeing = static_cast<const Freeing*>(argument);
    if (size == sizeof *freeing && freeing->status == kOk) Forget(freeing->root, freeing->object);
  } else if (size == sizeof(Allocation)) {
    const auto* const made = static_cast<const Allocation*>(argument);
    if (made->type == kGroupClass && made->status == kOk) Add(fd, made->root, made->object);
  } else if (size == sizeof(OlderAllocation)) {
    const auto* const made = static_cast<const OlderAllocation*>(argument);
    if (made->type == kGroupClass && made->status == kOk) Add(fd, made->root, made->object);
  }
}

void ChannelGroups::Add(int fd, uint32_t client, uint32_t object) {
  const KeepErrno keep;
  Forget(client, object);  // an earlier group of that handle is gone
  Group group{fd, getpid(), client, object, 0, 0};
  if (!Identify(fd, &group.device, &group.inode)) return;
  for (Entry& entry : entries_) {
    // relaxed, here and for the exchange: the fence orders what follows.
    uint32_t state = entry.state.load(std::memory_order_relaxed);
    if ((state & kStageMask) != kEmpty) continue;
    if (!entry.state.compare_exchange_strong(state, state | kFilling, std::memory_order_relaxed)) continue;
    // release: a reader that sees any of these values also sees that the state has changed.
    std::atomic_thread_fence(std::memory_order_release);
    entry.fd.store(group.fd, std::memory_order_relaxed);
    entry.pid.store(group.pid, std::memory_order_relaxed);
    entry.client.store(group.client, std::memory_order_relaxed);
    entry.object.store(group.object, std::memory_order_relaxed);
    entry.device.store(group.device, std::memory_order_relaxed);
    entry.inode.store(group.inode, std::memory_order_relaxed);
    // release: a reader that sees it live also sees the values.
    entry.state.store((state + kNextGroup) | kLive, std::memory_order_release);
    return;
  }
}

bool ChannelGroups::Copy(const Entry& entry, uint32_t* state, Group* out) {
  // acquire: pairs with the store that makes it live. relaxed, the values: the state is checked again afterwards.
  *state = entry.state.load(std::memory_order_acquire);
  if ((*state & kStageMask) != kLive) return false;
  out->fd = entry.fd.load(std::memory_order_relaxed);
  out->pid = entry.pid.load(std::memory_order_relaxed);
  out->client = entry.client.load(std::memory_order_relaxed);
  out->object = entry.object.load(std::memory_order_relaxed);
  out->device = entry.device.load(std::memory_order_relaxed);
  out->inode = entry.inode.load(std::memory_order_relaxed);
  // acquire: pairs with the fence of a thread that fills the entry again.
  std::atomic_thread_fence(std::memory_order_acquire);
  return entry.state.load(std::memory_order_relaxed) == *state;
}

void ChannelGroups::Forget(Entry* entry, uint32_t state) {
  // relaxed: publishes nothing. Compared with the state that was seen, so that a newer group in the entry stays.
  entry->state.compare_exchange_strong(state, state & ~static_cast<uint32_t>(kStageMask), std::memory_order_relaxed);
}

void ChannelGroups::Forget(uint32_t client, uint32_t object) {
  for (Entry& entry : entries_) {
    uint32_t state = 0;
    Group group;
    if (!Copy(entry, &state, &group) || group.client != client) continue;
    // A client is an object of its own. When it is freed, so are all its objects.
    if (group.object == object || client == object) Forget(&entry, state);
  }
}

// ---- time slices ---------------------------------------------------------------------------------------------------

SliceReport ChannelGroups::SetTimeSlice(uint32_t us, IoctlFunction ioctl) {
  const KeepErrno keep;
  const pid_t pid = getpid();
  SliceReport report{0, 0};
  for (Entry& entry : entries_) {
    uint32_t state = 0;
    Group group;
    if (!Copy(entry, &state, &group) || group.pid != pid) continue;
    uint64_t device = 0;
    uint64_t inode = 0;
    const bool is_there = Identify(group.fd, &device, &inode) && device == group.device && inode == group.inode;
    if (entry.known_state != state) {
      entry.known_state = state;
      entry.set_us = 0;
      entry.before_us = 0;
    }
    const Answer answer = is_there ? Apply(&entry, group, us, ioctl) : Answer::kGone;
    if (answer == Answer::kGone) {
      Forget(&entry, state);
      continue;
    }
    ++report.groups;
    if (answer == Answer::kOk) ++report.in_force;
  }
  return report;
}

ChannelGroups::Answer ChannelGroups::Apply(Entry* entry, const Group& group, uint32_t us, IoctlFunction ioctl) {
  uint64_t now = 0;
  if (const Answer answer = Control(group, kGetTimeSlice, &now, ioctl); answer != Answer::kOk) return answer;
  uint64_t wanted = us;
  if (us != 0) {
    // libcuda sets its own slice some time after it has made a group. What is not ours is what to restore later.
    if (now != entry->set_us) entry->before_us = now;
  } else {
    if (now != entry->set_us) entry->set_us = 0;
    if (entry->set_us == 0) return Answer::kOk;  // the slice is not ours
    wanted = entry->before_us;
  }
  if (now != wanted) {
    uint64_t value = wanted;
    if (const Answer answer = Control(group, kSetTimeSlice, &value, ioctl); answer != Answer::kOk) return answer;
    // The driver returns what was set, even if the device rounds it.
    if (const Answer answer = Control(group, kGetTimeSlice, &now, ioctl); answer != Answer::kOk) return answer;
    if (now != wanted) return Answer::kRefused;
  }
  entry->set_us = us;
  return Answer::kOk;
}

ChannelGroups::Answer ChannelGroups::Control(const Group& group, uint32_t command, uint64_t* value,
                                             IoctlFunction ioctl) {
  Request request{group.client, group.object, command, 0, reinterpret_cast<uintptr_t>(value), sizeof *value, 0};
  if (ioctl(group.fd, _IOWR(kType, kControl, Request), &request) != 0) {
    // kGone: it is no longer the driver's descriptor. kRefused: the driver does not know the control.
    return errno == EBADF || errno == ENOTTY ? Answer::kGone : Answer::kRefused;
  }
  switch (request.status) {
    case kOk:
      return Answer::kOk;
    case kInvalidClient:
    case kInvalidObject:
    case kInvalidObjectHandle:
    case kObjectNotFound:
    case kResourceLost:
      return Answer::kGone;
    default:
      return Answer::kRefused;
  }
}

}  // namespace xschedd::shim::cuda
