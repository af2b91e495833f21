#include "tools/softgpu/hsa/queue.h"

#include <sys/mman.h>

#include <bit>
#include <type_traits>

namespace softgpu {

namespace {

std::atomic<uint32_t> next_ordinal{0};  // relaxed: only unique

constexpr uint32_t kHeaderInvalid = HSA_PACKET_TYPE_INVALID << HSA_PACKET_HEADER_TYPE;
constexpr uint32_t kTypeMask = (1u << HSA_PACKET_HEADER_WIDTH_TYPE) - 1;

}  // namespace

Queue* Queue::create(Agent& agent, uint32_t packets, hsa_queue_type32_t type, ErrorCallback callback, void* data) {
  void* ring = mmap(nullptr, packets * sizeof(Packet), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ring == MAP_FAILED) return nullptr;
  auto* q = new Queue;
  q->agent_ = &agent;
  q->ordinal_ = next_ordinal.fetch_add(1, std::memory_order_relaxed);
  q->ring_ = static_cast<Packet*>(ring);
  q->size_ = packets;
  q->on_error_ = callback;
  q->on_error_data_ = data;
  q->published_ns_.resize(packets);
  for (uint32_t i = 0; i < packets; ++i) {
    q->ring_[i].header_and_setup.store(kHeaderInvalid, std::memory_order_relaxed);
  }
  q->doorbell_ = make_signal(0);
  q->doorbell_->abi.kind = AMD_SIGNAL_KIND_DOORBELL;
  // From ROCm 6.4 on its type is amd_queue_v2_t, which begins like this one; there is room for all of it.
  auto& queue_ptr = q->doorbell_->abi.queue_ptr;
  queue_ptr = reinterpret_cast<std::remove_reference_t<decltype(queue_ptr)>>(&q->abi_.queue);
  q->doorbell_->doorbell_of = q;
  hsa_queue_t& h = q->abi_.queue.hsa_queue;
  h.type = type;
  h.features = HSA_QUEUE_FEATURE_KERNEL_DISPATCH;
  h.base_address = ring;
  h.doorbell_signal = q->doorbell_->handle();
  h.size = packets;
  h.id = q->ordinal_;
  q->abi_.queue.queue_properties = AMD_QUEUE_PROPERTIES_IS_PTR64 | AMD_QUEUE_PROPERTIES_ENABLE_PROFILING;
  q->abi_.queue.read_dispatch_id_field_base_byte_offset = offsetof(amd_queue_t, read_dispatch_id);
  start_thread("softgpu-queue", [q] { q->run(); });
  return q;
}

void Queue::destroy() {
  stopping_.store(true, std::memory_order_seq_cst);
  doorbell_rung_.notify();
  if (!inert()) {
    // acquire: the thread's last accesses come before its memory is freed.
    while (stopped_.load(std::memory_order_acquire) == 0)
      futex_wait_until(stopped_, 0, kForever);
  }
  free_signal(doorbell_);
  munmap(ring_, size_ * sizeof(Packet));
  delete this;
}

void Queue::ring_doorbell(uint64_t last_packet) {
  {
    const std::lock_guard guard(ring_lock_);
    const uint64_t now = now_ns();
    const uint64_t published = published_.load(std::memory_order_relaxed);
    for (uint64_t i = published; i <= last_packet; ++i)
      published_ns_[i & (size_ - 1)] = now;
    if (last_packet + 1 > published) published_.store(last_packet + 1, std::memory_order_release);
  }
  // Also if nothing new was announced: two threads may ring in a different order than they wrote their packets.
  doorbell_rung_.notify();
}

const char* Queue::priority() const {
  constexpr const char* kNames[] = {"low", "normal", "high"};
  return kNames[priority_.load(std::memory_order_relaxed)];
}

// Waits for the packet at `index`; false when the queue is to stop.
bool Queue::next_packet(uint64_t index) {
  const auto ready = [&] {
    if (index >= published_.load(std::memory_order_seq_cst)) return false;
    const uint32_t header = ring_[index & (size_ - 1)].header_and_setup.load(std::memory_order_acquire);
    return ((header >> HSA_PACKET_HEADER_TYPE) & kTypeMask) != HSA_PACKET_TYPE_INVALID;
  };
  while (!ready()) {
    const uint32_t ticket = doorbell_rung_.prepare();
    if (stopping_.load(std::memory_order_seq_cst) || ready()) {
      doorbell_rung_.cancel();
    } else {
      doorbell_rung_.wait(ticket);
    }
    if (stopping_.load(std::memory_order_seq_cst)) return false;
  }
  return true;
}

void Queue::run() {
  for (uint64_t index = 0; next_packet(index); ++index) {
    Packet& packet = ring_[index & (size_ - 1)];
    uint64_t published_ns = 0;
    {
      const std::lock_guard guard(ring_lock_);
      published_ns = published_ns_[index & (size_ - 1)];
    }
    process(packet, published_ns);
    packet.header_and_setup.store(kHeaderInvalid, std::memory_order_release);
    read_index().store(index + 1, std::memory_order_release);
  }
  stopped_.store(1, std::memory_order_release);
  futex_wake_all(stopped_);
}

SOFTGPU_API hsa_status_t hsa_queue_create(hsa_agent_t agent_handle, uint32_t size, hsa_queue_type32_t type,
                                          void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data, uint32_t,
                                          uint32_t, hsa_queue_t** queue) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  Agent* agent = rt->agent(agent_handle);
  if (agent == nullptr || !agent->is_gpu()) return HSA_STATUS_ERROR_INVALID_AGENT;
  if (queue == nullptr || !std::has_single_bit(size)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Queue* q = Queue::create(*agent, size, type, callback, data);
  if (q == nullptr) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  *queue = q->handle();
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_queue_destroy(hsa_queue_t* queue) {
  if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_QUEUE;
  Queue::from(queue)->destroy();
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API uint64_t hsa_queue_load_read_index_relaxed(const hsa_queue_t* queue) {
  return Queue::from(queue)->read_index().load(std::memory_order_relaxed);
}
SOFTGPU_API uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t* queue) {
  return Queue::from(queue)->read_index().load(std::memory_order_acquire);
}
SOFTGPU_API uint64_t hsa_queue_load_write_index_relaxed(const hsa_queue_t* queue) {
  return Queue::from(queue)->write_index().load(std::memory_order_relaxed);
}
SOFTGPU_API uint64_t hsa_queue_load_write_index_scacquire(const hsa_queue_t* queue) {
  return Queue::from(queue)->write_index().load(std::memory_order_acquire);
}
SOFTGPU_API uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t* queue, uint64_t value) {
  return Queue::from(queue)->write_index().fetch_add(value, std::memory_order_relaxed);
}
SOFTGPU_API uint64_t hsa_queue_add_write_index_screlease(const hsa_queue_t* queue, uint64_t value) {
  return Queue::from(queue)->write_index().fetch_add(value, std::memory_order_release);
}
SOFTGPU_API void hsa_queue_store_write_index_screlease(const hsa_queue_t* queue, uint64_t value) {
  Queue::from(queue)->write_index().store(value, std::memory_order_release);
}

SOFTGPU_API hsa_status_t hsa_amd_queue_cu_set_mask(const hsa_queue_t* queue, uint32_t bits, const uint32_t* mask) {
  if (queue == nullptr || (bits > 0 && mask == nullptr)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  uint32_t units = 0;
  for (uint32_t i = 0; i < bits / 32; ++i)
    units += static_cast<uint32_t>(std::popcount(mask[i]));
  Queue::from(queue)->limit_compute_units(units > 0 ? units : UINT32_MAX);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_queue_set_priority(hsa_queue_t* queue, hsa_amd_queue_priority_t priority) {
  if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_QUEUE;
  if (priority > HSA_AMD_QUEUE_PRIORITY_HIGH) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const Runtime* rt = runtime();
  if (rt != nullptr && rt->settings.refuses_queue_priorities) return HSA_STATUS_ERROR_INVALID_QUEUE;
  Queue::from(queue)->set_priority(priority);
  return HSA_STATUS_SUCCESS;
}
SOFTGPU_API hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t*, int) {
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
