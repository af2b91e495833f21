#include "client-shim/hip/hardware_queues.h"

namespace xschedd::shim::hip {
namespace {

// hsa_amd_queue_priority_t
constexpr int kLow = 0;
constexpr int kNormal = 1;
constexpr int kHigh = 2;

constinit HardwareQueues g_queues;
constinit HsaFunction<uint64_t, uint32_t, uint32_t, void*, void*, uint32_t, uint32_t, void**> g_create(
    "hsa_queue_create");
constinit HsaFunction<void*> g_destroy("hsa_queue_destroy");
constinit HsaFunction<void*, int> g_set_priority("hsa_amd_queue_set_priority");

HsaStatus SetInRuntime(void* queue, int priority) {
  return g_set_priority(queue, priority);
}

}  // namespace

class HardwareQueues::Lock {
 public:
  explicit Lock(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
  ~Lock() { pthread_mutex_unlock(mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t* const mutex_;
};

bool HardwareQueues::Own() {
  pid_t nobody = 0;
  owner_.compare_exchange_strong(nobody, getpid(), std::memory_order_relaxed);
  return IsOwn();
}

int HardwareQueues::Wanted(const Queue& queue) const {
  if (wanted_ == QueuePriority::kProgram) return queue.asked;
  return wanted_ == QueuePriority::kHigh ? kHigh : kLow;
}

HsaStatus HardwareQueues::Apply(Queue* queue, Set set) const {
  const int wanted = Wanted(*queue);
  if (queue->in_force == wanted) return kHsaSuccess;
  const HsaStatus status = set(queue->handle, wanted);
  if (status == kHsaSuccess) queue->in_force = wanted;
  return status;
}

HardwareQueues::Queue* HardwareQueues::Find(void* handle) {
  for (unsigned i = 0; i < count_; ++i) {
    if (queues_[i].handle == handle) return &queues_[i];
  }
  return nullptr;
}

void HardwareQueues::Add(void* queue, Set set) {
  if (!Own()) return;
  const Lock lock(&mutex_);
  if (count_ == kMaxQueues) return;
  queues_[count_] = {queue, kNormal, kNormal};
  (void)Apply(&queues_[count_++], set);
}

void HardwareQueues::Remove(void* queue) {
  if (!IsOwn()) return;
  const Lock lock(&mutex_);
  if (Queue* known = Find(queue)) *known = queues_[--count_];
}

HsaStatus HardwareQueues::Ask(void* queue, int priority, Set set) {
  if (!IsOwn()) return set(queue, priority);
  const Lock lock(&mutex_);
  Queue* const known = Find(queue);
  if (known == nullptr || priority < kLow || priority > kHigh) return set(queue, priority);
  if (wanted_ == QueuePriority::kProgram) {
    const HsaStatus status = set(queue, priority);
    if (status != kHsaSuccess) return status;
    known->in_force = priority;
  }
  known->asked = priority;
  return kHsaSuccess;
}

QueuePriorityReport HardwareQueues::SetAll(QueuePriority wanted, Set set) {
  if (!Own()) return {0, 0};
  const Lock lock(&mutex_);
  wanted_ = wanted;
  QueuePriorityReport report{count_, 0};
  for (unsigned i = 0; i < count_; ++i)
    report.in_force += Apply(&queues_[i], set) == kHsaSuccess ? 1 : 0;
  return report;
}

QueuePriorityReport SetQueuePriority(QueuePriority wanted) {
  return g_queues.SetAll(wanted, SetInRuntime);
}

}  // namespace xschedd::shim::hip

// Unversioned, like the entry points: the runtime's versioned references bind to them.
int hsa_queue_create(uint64_t agent, uint32_t size, uint32_t type, void* callback, void* data, uint32_t private_segment,
                     uint32_t group_segment, void** queue) {
  using namespace xschedd::shim::hip;
  const HsaStatus status = g_create(agent, size, type, callback, data, private_segment, group_segment, queue);
  if (status == kHsaSuccess && queue != nullptr) g_queues.Add(*queue, SetInRuntime);
  return status;
}

int hsa_queue_destroy(void* queue) {
  using namespace xschedd::shim::hip;
  g_queues.Remove(queue);
  return g_destroy(queue);
}

int hsa_amd_queue_set_priority(void* queue, int priority) {
  using namespace xschedd::shim::hip;
  return g_queues.Ask(queue, priority, SetInRuntime);
}
