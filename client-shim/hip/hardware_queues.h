// The hardware queues of this process, and their priorities.
//
// A HIP stream's work goes into a queue of ROCr, which the device schedules among those of all processes. The runtime
// makes queues by hsa_queue_create and gives streams with a priority their own by hsa_amd_queue_set_priority; the
// preloaded stub defines both, and hsa_queue_destroy. A queue's priority may be changed at any time. On devices without
// MES each change takes the queues of every process off the device for a moment, so only a difference is written.
// Sources: hsa_ext_amd.h of ROCm 5.2 to 7.2; kfd_device_queue_manager.c of Linux 6.
//
// Unknown queues are left alone: those beyond kMaxQueues, those that ROCr makes for itself, and a parent's in its child
// of fork, where none can be used.
// Thread rule: any thread; under its lock, ROCr is called.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

#include "client-shim/core/interface.h"
#include "client-shim/hip/hsa.h"
#include "client-shim/stub/exposed.h"

namespace xschedd::shim::hip {

class HardwareQueues {
 public:
  static constexpr unsigned kMaxQueues = 256;  // a device has 24 to 32 that run at a time
  using Set = HsaStatus (*)(void* queue, int priority);

  // A queue was made, with the runtime's normal priority. `set` reaches the runtime, here and below.
  void Add(void* queue, Set set);
  // It is about to be destroyed.
  void Remove(void* queue);
  // The program asks for this priority: that is what it gets, unless another is in force.
  HsaStatus Ask(void* queue, int priority, Set set);
  // Vendor::set_queue_priority.
  QueuePriorityReport SetAll(QueuePriority wanted, Set set);

 private:
  struct Queue {
    void* handle;
    int asked;     // by the program
    int in_force;  // as last set
  };
  class Lock;
  // relaxed, both: a child of fork sees what its parent's thread saw. It never takes the lock, which may have been
  // held at the fork by a thread that the child does not have.
  bool IsOwn() const { return owner_.load(std::memory_order_relaxed) == getpid(); }
  // The same, for whoever is first.
  bool Own();
  int Wanted(const Queue& queue) const;
  HsaStatus Apply(Queue* queue, Set set) const;
  Queue* Find(void* handle);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<pid_t> owner_{0};  // the process whose queues these are; 0: nobody's yet
  QueuePriority wanted_ = QueuePriority::kProgram;
  unsigned count_ = 0;
  Queue queues_[kMaxQueues] = {};
};

// As Vendor::set_queue_priority.
QueuePriorityReport SetQueuePriority(QueuePriority wanted);

}  // namespace xschedd::shim::hip

XS_EXPORTED int hsa_queue_create(uint64_t agent, uint32_t size, uint32_t type, void* callback, void* data,
                                 uint32_t private_segment, uint32_t group_segment, void** queue);
XS_EXPORTED int hsa_queue_destroy(void* queue);
XS_EXPORTED int hsa_amd_queue_set_priority(void* queue, int priority);
