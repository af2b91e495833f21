// What a packet processor does with one packet; see queue.h. Thread rule: the queue's own thread.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tools/softgpu/hsa/blit.h"
#include "tools/softgpu/hsa/kernel_registry.h"
#include "tools/softgpu/hsa/memory.h"
#include "tools/softgpu/hsa/queue.h"

namespace softgpu {

namespace {

// From the doorbell to the start of a dispatch on an idle device. A packet that was queued behind another one starts
// when that one ends: fetching it overlaps with execution.
constexpr uint64_t kLaunchLatencyNs = 2'000;
// One in this many barriers of a queue is late, if SOFTGPU_LATE_BARRIERS is set.
constexpr uint64_t kLateBarriers = 4;
// Dependencies are waited for in slices, so that a queue can be destroyed while a packet in it waits for ever.
constexpr uint64_t kSliceNs = 100'000'000;

// The device time at which a satisfied `signal` became so: the device's time stamp, else the host's clock if there was
// a wait.
uint64_t satisfied_ns(Signal& signal, bool waited, uint64_t ready_ns) {
  const uint64_t stamp = signal.device_done_ns.load(std::memory_order_relaxed);
  if (stamp != 0) return std::max(stamp, ready_ns);
  return waited ? now_ns() : ready_ns;
}

uint32_t dimension(uint32_t items, uint32_t group) {
  return group == 0 ? 1 : (items + group - 1) / group;
}

softgpu_dispatch describe(const hsa_kernel_dispatch_packet_t& p, const Kernel& kernel, uint32_t device,
                          uint32_t queue) {
  softgpu_dispatch d{};
  d.abi_version = SOFTGPU_ABI_VERSION;
  d.device = device;
  d.queue = queue;
  const uint32_t grid[3] = {p.grid_size_x, p.grid_size_y, p.grid_size_z};
  const uint32_t group[3] = {p.workgroup_size_x, p.workgroup_size_y, p.workgroup_size_z};
  for (int i = 0; i < 3; ++i) {
    d.grid_size[i] = grid[i];
    d.workgroup_size[i] = group[i];
    d.workgroups[i] = dimension(grid[i], group[i]);
  }
  d.group_segment_size = p.group_segment_size;
  d.private_segment_size = p.private_segment_size;
  d.kernarg_size = kernel.kernarg_size;
  d.kernarg = p.kernarg_address;
  d.name = kernel.name.c_str();
  return d;
}

// The arguments, with device addresses of locked memory replaced by host addresses.
const void* host_arguments(const void* kernarg, uint32_t size, std::vector<uint64_t>& copy) {
  const auto* words = static_cast<const uint64_t*>(kernarg);
  const uint32_t count = size / sizeof(uint64_t);
  if (std::none_of(words, words + count, is_tagged)) return kernarg;
  copy.assign(words, words + count);
  for (uint64_t& word : copy) {
    if (is_tagged(word)) word ^= kLockedTag;
  }
  return copy.data();
}

uint64_t duration_ns(const Runtime& rt, const Kernel& kernel, const softgpu_dispatch& d, const DispatchShape& shape,
                     uint32_t units, uint64_t blit_bytes, uint64_t sequence) {
  double ns = 0;
  if (kernel.is_blit) {
    ns = static_cast<double>(copy_duration_ns(CopyPath::kDeviceToDevice, blit_bytes));
  } else if (kernel.host != nullptr && kernel.host->cost_ns != nullptr) {
    ns = static_cast<double>(kernel.host->cost_ns(&d));
  } else if (const auto listed = rt.durations.duration_ns(d.name)) {
    ns = static_cast<double>(*listed);
  } else {
    ns = static_cast<double>(modelled_duration_ns(shape, units));
  }
  const uint64_t stream = uint64_t{d.device} << 32 | d.queue;
  ns *= rt.settings.clock_scale * jitter_factor(rt.settings.seed, stream, sequence, rt.settings.jitter_percent);
  return static_cast<uint64_t>(std::clamp(ns, 1.0, 1e15));
}

}  // namespace

void Queue::process(Packet& packet, uint64_t published_ns) {
  const uint64_t ready_ns = std::max(published_ns, last_end_ns_);
  // relaxed: next_packet has read it with acquire.
  const uint32_t header = packet.header_and_setup.load(std::memory_order_relaxed);
  const uint32_t type = (header >> HSA_PACKET_HEADER_TYPE) & ((1u << HSA_PACKET_HEADER_WIDTH_TYPE) - 1);
  hsa_signal_t completion{};
  switch (type) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      process_dispatch(packet.dispatch, std::max(published_ns + kLaunchLatencyNs, last_end_ns_));
      return;
    case HSA_PACKET_TYPE_BARRIER_AND:
      last_end_ns_ = wait_for_all(packet.barrier, ready_ns);
      if (const uint64_t late_us = runtime()->settings.late_barriers_us;
          late_us != 0 && barriers_++ % kLateBarriers == 0) {
        last_end_ns_ = std::max(last_end_ns_, now_ns()) + late_us * 1000;
        sleep_until(last_end_ns_);
      }
      completion = packet.barrier.completion_signal;
      break;
    case HSA_PACKET_TYPE_BARRIER_OR:
      last_end_ns_ = wait_for_any(packet.barrier, ready_ns);
      completion = packet.barrier.completion_signal;
      break;
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      last_end_ns_ = wait_for_value(packet.barrier_value, ready_ns);
      completion = packet.barrier_value.completion_signal;
      break;
    default:
      std::fprintf(stderr, "softgpu: packet type %u is not implemented\n", type);
      if (on_error_ != nullptr) on_error_(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT, handle(), on_error_data_);
      return;
  }
  if (completion.handle != 0) Signal::from(completion)->complete(last_end_ns_, last_end_ns_);
}

void Queue::process_dispatch(const hsa_kernel_dispatch_packet_t& packet, uint64_t ready_ns) {
  Runtime& rt = *runtime();
  const Kernel* kernel = find_kernel(packet.kernel_object);
  if (kernel == nullptr) {
    std::fprintf(stderr, "softgpu: dispatch of an unknown kernel object\n");
    if (on_error_ != nullptr) on_error_(HSA_STATUS_ERROR_INVALID_CODE_OBJECT, handle(), on_error_data_);
    return;
  }
  softgpu_dispatch d = describe(packet, *kernel, agent_->ordinal, ordinal_);
  std::vector<uint64_t> arguments;
  if (kernel->host != nullptr) d.kernarg = host_arguments(d.kernarg, (d.kernarg_size + 7) & ~7u, arguments);
  DispatchShape shape;
  shape.workgroups = uint64_t{d.workgroups[0]} * d.workgroups[1] * d.workgroups[2];
  shape.workgroup_size = d.workgroup_size[0] * d.workgroup_size[1] * d.workgroup_size[2];
  shape.group_segment_size = d.group_segment_size;
  const uint32_t limit = std::min(rt.settings.compute_units, compute_unit_limit_.load(std::memory_order_relaxed));
  const uint32_t units = compute_units_needed(shape, limit);

  // The runtime's own kernels run first; their time is booked afterwards, by the number of bytes that they moved.
  uint64_t blit_bytes = 0;
  if (kernel->is_blit) {
    sleep_until(ready_ns);
    const auto give_up = [](void* queue) {
      return static_cast<Queue*>(queue)->stopping_.load(std::memory_order_relaxed);
    };
    blit_bytes = run_blit(*kernel, packet.kernarg_address, give_up, this);
    if (is_stream_wait(*kernel)) ready_ns = now_ns();
  }
  const Booking booking =
      rt.region.device(agent_->ordinal)
          .compute.book({.pid = getpid(),
                         .units = units,
                         .now_ns = now_ns(),
                         .arrival_ns = ready_ns,
                         .duration_ns = duration_ns(rt, *kernel, d, shape, units, blit_bytes, dispatches_++)});
  if (kernel->host != nullptr && kernel->host->run != nullptr) {
    sleep_until(booking.start_ns);
    kernel->host->run(&d);
  }
  sleep_until(booking.end_ns);
  last_end_ns_ = booking.end_ns;
  rt.trace.write({kernel->is_blit ? "blit" : "kernel", d.name, agent_->ordinal, ordinal_, booking.units, priority(),
                  booking.arrival_ns, booking.start_ns, booking.end_ns});
  if (ends_in_fault(*kernel)) {
    if (on_error_ != nullptr)
      on_error_(static_cast<hsa_status_t>(HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION), handle(), on_error_data_);
    return;
  }
  if (packet.completion_signal.handle != 0) {
    Signal::from(packet.completion_signal)->complete(booking.start_ns, booking.end_ns);
  }
}

uint64_t Queue::wait_for_all(const hsa_barrier_and_packet_t& packet, uint64_t ready_ns) {
  uint64_t done_ns = ready_ns;
  for (const hsa_signal_t handle : packet.dep_signal) {
    if (handle.handle == 0) continue;
    Signal& signal = *Signal::from(handle);
    bool waited = false;
    while (wait_signal(signal, HSA_SIGNAL_CONDITION_LT, 1, waited ? now_ns() + kSliceNs : 0) >= 1) {
      waited = true;
      if (stopping_.load(std::memory_order_relaxed)) return done_ns;
    }
    done_ns = std::max(done_ns, satisfied_ns(signal, waited, ready_ns));
  }
  return done_ns;
}

uint64_t Queue::wait_for_any(const hsa_barrier_and_packet_t& packet, uint64_t ready_ns) {
  const auto find_done = [&]() -> Signal* {
    bool any = false;
    for (const hsa_signal_t handle : packet.dep_signal) {
      if (handle.handle == 0) continue;
      any = true;
      if (Signal::from(handle)->value().load() < 1) return Signal::from(handle);
    }
    return any ? nullptr : doorbell_;  // without dependencies nothing is waited for
  };
  const auto watch = [&](int delta) {
    for (const hsa_signal_t handle : packet.dep_signal) {
      if (handle.handle != 0) {
        Signal::from(handle)->watchers.fetch_add(static_cast<uint32_t>(delta), std::memory_order_seq_cst);
      }
    }
  };
  Signal* done = find_done();
  bool waited = false;
  watch(1);
  while (done == nullptr && !stopping_.load(std::memory_order_relaxed)) {
    const uint32_t ticket = watched_signals_changed().prepare();
    done = find_done();
    if (done != nullptr) {
      watched_signals_changed().cancel();
    } else {
      waited = true;
      watched_signals_changed().wait(ticket, now_ns() + kSliceNs);
    }
  }
  watch(-1);
  return done != nullptr ? satisfied_ns(*done, waited, ready_ns) : ready_ns;
}

uint64_t Queue::wait_for_value(const hsa_amd_barrier_value_packet_t& packet, uint64_t ready_ns) {
  if (packet.header.AmdFormat != HSA_AMD_PACKET_TYPE_BARRIER_VALUE) {
    std::fprintf(stderr, "softgpu: vendor packet format %u is not implemented\n", packet.header.AmdFormat);
    return ready_ns;
  }
  if (packet.signal.handle == 0) return ready_ns;
  Signal& signal = *Signal::from(packet.signal);
  const auto condition = static_cast<hsa_signal_condition_t>(packet.cond);
  bool waited = false;
  while (!satisfied(condition,
                    wait_signal(signal, condition, packet.value, waited ? now_ns() + kSliceNs : 0, packet.mask),
                    packet.value)) {
    waited = true;
    if (stopping_.load(std::memory_order_relaxed)) break;
  }
  return satisfied_ns(signal, waited, ready_ns);
}

}  // namespace softgpu
