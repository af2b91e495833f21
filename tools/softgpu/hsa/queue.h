// One hardware queue: an AQL ring in memory, a doorbell, and a packet processor thread.
//
// The thread takes packets in order, one at a time (the HIP runtime sets the barrier bit on its packets, so no
// concurrency is lost), waits for their dependencies, gets their start and end from the device model, runs the host
// function if there is one, sleeps until the end, and completes the signal. Without packets it sleeps on the doorbell.
// Thread rule: ring_doorbell from any thread; create and stop from the thread that owns the queue.
#pragma once

#include <hsa/amd_hsa_queue.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tools/softgpu/hsa/futex.h"
#include "tools/softgpu/hsa/runtime.h"
#include "tools/softgpu/hsa/signal.h"

namespace softgpu {

// A packet of any kind. The header is written last, with release, by whoever submits it.
union alignas(64) Packet {
  std::atomic<uint32_t> header_and_setup;
  hsa_kernel_dispatch_packet_t dispatch;
  hsa_barrier_and_packet_t barrier;
  hsa_amd_barrier_value_packet_t barrier_value;
  unsigned char bytes[64];
};
static_assert(sizeof(Packet) == 64);

class Queue {
 public:
  using ErrorCallback = void (*)(hsa_status_t, hsa_queue_t*, void*);

  static Queue* create(Agent& agent, uint32_t packets, hsa_queue_type32_t type, ErrorCallback callback, void* data);
  static Queue* from(const hsa_queue_t* queue) { return reinterpret_cast<Queue*>(const_cast<hsa_queue_t*>(queue)); }
  // Ends the thread after the packet in progress, and frees the queue.
  void destroy();

  void ring_doorbell(uint64_t last_packet);
  // Limits the queue to as many compute units as the mask has bits set; which ones is not modelled.
  void limit_compute_units(uint32_t count) { compute_unit_limit_.store(count, std::memory_order_relaxed); }

  // Only shown: as on a GPU whose other queues have no work, it changes nothing.
  void set_priority(hsa_amd_queue_priority_t priority) { priority_.store(priority, std::memory_order_relaxed); }

  hsa_queue_t* handle() { return &abi_.queue.hsa_queue; }
  std::atomic_ref<uint64_t> write_index() {
    return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(abi_.queue.write_dispatch_id));
  }
  std::atomic_ref<uint64_t> read_index() {
    return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(abi_.queue.read_dispatch_id));
  }

 private:
  Queue() = default;
  ~Queue() = default;

  void run();
  const char* priority() const;
  bool next_packet(uint64_t index);
  void process(Packet& packet, uint64_t published_ns);
  void process_dispatch(const hsa_kernel_dispatch_packet_t& packet, uint64_t ready_ns);
  uint64_t wait_for_all(const hsa_barrier_and_packet_t& packet, uint64_t ready_ns);
  uint64_t wait_for_any(const hsa_barrier_and_packet_t& packet, uint64_t ready_ns);
  uint64_t wait_for_value(const hsa_amd_barrier_value_packet_t& packet, uint64_t ready_ns);

  // First member, because a queue's handle is its address. Larger than needed, because the HIP runtime may read fields
  // that newer ROCr versions append.
  union {
    amd_queue_t queue;
    unsigned char room[1024];
  } abi_{};
  Agent* agent_ = nullptr;
  uint32_t ordinal_ = 0;  // in this process
  Packet* ring_ = nullptr;
  uint64_t size_ = 0;
  Signal* doorbell_ = nullptr;
  ErrorCallback on_error_ = nullptr;
  void* on_error_data_ = nullptr;
  std::atomic<uint32_t> compute_unit_limit_{UINT32_MAX};
  std::atomic<int> priority_{HSA_AMD_QUEUE_PRIORITY_NORMAL};

  std::mutex ring_lock_;                // guards published_ns_
  std::vector<uint64_t> published_ns_;  // when each packet in the ring was announced by the doorbell
  std::atomic<uint64_t> published_{0};  // packets announced; release/acquire with published_ns_
  EventCount doorbell_rung_;
  std::atomic<bool> stopping_{false};  // seq_cst, see EventCount
  std::atomic<uint32_t> stopped_{0};   // 1: the thread is done with this object; release/acquire

  // Only the packet processor:
  uint64_t last_end_ns_ = 0;  // device time at which the previous packet ended
  uint64_t dispatches_ = 0;
  uint64_t barriers_ = 0;
};

}  // namespace softgpu
