#include "tools/softgpu/hsa/blit.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tools/softgpu/hsa/kernel_registry.h"
#include "tools/softgpu/hsa/memory.h"
#include "tools/softgpu/hsa/not_implemented.h"
#include "tools/softgpu/model/clock.h"

namespace softgpu {

namespace {

constexpr char kPrefix[] = "__amd_rocclr_";
constexpr uint64_t kBlitPollNs = 20'000;

// Arguments at their byte offsets.
class Arguments {
 public:
  explicit Arguments(const void* kernarg) : base_(static_cast<const unsigned char*>(kernarg)) {}
  template <typename T>
  T at(size_t offset) const {
    T value;
    std::memcpy(&value, base_ + offset, sizeof value);
    return value;
  }
  unsigned char* pointer(size_t offset) const { return host_address(at<unsigned char*>(offset)); }
  uint64_t word(size_t offset) const { return at<uint64_t>(offset); }
  uint32_t half(size_t offset) const { return at<uint32_t>(offset); }

 private:
  const unsigned char* base_;
};

// Bytes of arguments the kernel declares: its kernarg segment less the hidden arguments of code object version 5 (256
// bytes) or earlier (56 bytes).
uint32_t explicit_size(const Kernel& kernel) {
  if (kernel.kernarg_size >= 256) return kernel.kernarg_size - 256;
  return kernel.kernarg_size > 64 ? kernel.kernarg_size - 56 : kernel.kernarg_size;
}

uint64_t repeat(unsigned char* to, const unsigned char* pattern, uint64_t pattern_bytes, uint64_t bytes) {
  if (pattern_bytes == 0) return 0;
  for (uint64_t done = 0; done < bytes; done += pattern_bytes) {
    std::memcpy(to + done, pattern, std::min(pattern_bytes, bytes - done));
  }
  return bytes;
}

// The fills of ROCm 5 pass the buffer as one of four pointers, by width of the element; the others are null.
struct Element {
  unsigned char* buffer;
  uint64_t width;
};
Element element_of(const Arguments& a) {
  for (const auto& [offset, width] : {std::pair<size_t, uint64_t>{24, 8}, {16, 4}, {8, 2}, {0, 1}}) {
    if (a.pointer(offset) != nullptr) return {a.pointer(offset), width};
  }
  return {nullptr, 0};
}

uint64_t fill_buffer(const Kernel& kernel, const Arguments& a) {
  if (explicit_size(kernel) <= 40) {
    // ROCm 6: buffer, pattern, pattern size in elements, bytes of an element, end of the buffer, ...
    unsigned char* buffer = a.pointer(0);
    const auto bytes = static_cast<uint64_t>(a.pointer(24) - buffer);
    return repeat(buffer, a.pointer(8), uint64_t{a.half(16)} * a.half(20), bytes);
  }
  const Element element = element_of(a);
  if (element.buffer == nullptr) return 0;
  const uint64_t pattern_bytes = a.half(40) * element.width;
  return repeat(element.buffer + a.word(48) * element.width, a.pointer(32), pattern_bytes, pattern_bytes * a.word(56));
}

uint64_t fill_buffer_2d(const Kernel&, const Arguments& a) {
  const Element element = element_of(a);
  if (element.buffer == nullptr) return 0;
  const uint64_t pattern_bytes = a.half(40) * element.width;
  const uint64_t width = a.word(56);
  const uint64_t height = a.word(64);
  const uint64_t pitch = a.word(72);
  for (uint64_t y = 0; y < height; ++y) {
    unsigned char* row = element.buffer + (a.word(48) + y * pitch) * element.width;
    for (uint64_t x = 0; x < width; ++x)
      std::memcpy(row + x * element.width, a.pointer(32), pattern_bytes);
  }
  return width * height * pattern_bytes;
}

uint64_t copy_buffer(const Kernel&, const Arguments& a) {
  const unsigned char* from = a.pointer(0);
  unsigned char* to = a.pointer(8);
  // ROCm 6 has the end of the destination where ROCm 5 has a number of elements, which is never as large as an address.
  const auto fifth = reinterpret_cast<uint64_t>(a.pointer(32));
  uint64_t bytes = 0;
  if (fifth >= reinterpret_cast<uint64_t>(to)) {
    bytes = a.word(16);
  } else {
    from += a.word(16);
    to += a.word(24);
    const uint32_t remainder = a.half(40);
    bytes = remainder == 8 ? fifth : (fifth - 1) * 4 + remainder;
  }
  std::memmove(to, from, bytes);
  return bytes;
}

uint64_t copy_buffer_aligned(const Kernel&, const Arguments& a) {
  const uint64_t width = a.half(40) == 16 ? 16 : 4;
  std::memmove(a.pointer(8) + a.word(24) * width, a.pointer(0) + a.word(16) * width, a.word(32) * width);
  return a.word(32) * width;
}

// Rectangles are {row pitch, slice pitch, start}, the size is {x, y, slices, bytes of an aligned element}.
uint64_t copy_rectangle(const Arguments& a, uint64_t width) {
  const unsigned char* from = a.pointer(0);
  unsigned char* to = a.pointer(8);
  const uint64_t columns = a.word(96);
  const uint64_t rows = a.word(104);
  const uint64_t slices = a.word(112);
  for (uint64_t z = 0; z < slices; ++z) {
    for (uint64_t y = 0; y < rows; ++y) {
      const uint64_t source = a.word(48) + y * a.word(32) + z * a.word(40);
      const uint64_t target = a.word(80) + y * a.word(64) + z * a.word(72);
      std::memmove(to + target * width, from + source * width, columns * width);
    }
  }
  return columns * rows * slices * width;
}
uint64_t copy_buffer_rect(const Kernel&, const Arguments& a) {
  return copy_rectangle(a, 1);
}
uint64_t copy_buffer_rect_aligned(const Kernel&, const Arguments& a) {
  return copy_rectangle(a, a.word(120) == 16 ? 16 : 4);
}

uint64_t stream_write(const Kernel&, const Arguments& a) {
  // release: a thread that sees the value also sees the work before the write in its stream.
  if (a.pointer(0) != nullptr) {
    std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(a.pointer(0)))
        .store(static_cast<uint32_t>(a.word(16)), std::memory_order_release);
    return 4;
  }
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(a.pointer(8))).store(a.word(16), std::memory_order_release);
  return 8;
}

bool stream_condition_holds(const Arguments& a) {
  const bool narrow = a.pointer(0) != nullptr;
  const uint64_t bits = narrow ? UINT32_MAX : UINT64_MAX;
  const uint64_t wanted = a.word(16) & bits;
  // acquire: pairs with the release of stream_write and of the host.
  const uint64_t memory =
      narrow ? std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(a.pointer(0))).load(std::memory_order_acquire)
             : std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(a.pointer(8))).load(std::memory_order_acquire);
  const uint64_t value = memory & a.word(32) & bits;
  switch (a.word(24)) {
    case 0:
      return value >= wanted;
    case 1:
      return value == wanted;
    case 2:
      return (value & wanted) != 0;
    case 3:
      return (~(value | wanted) & bits) != 0;
    default:
      return true;
  }
}

uint64_t nothing(const Kernel&, const Arguments&) {
  return 0;
}

struct BlitKernel {
  const char* name;  // without the prefix
  uint64_t (*run)(const Kernel&, const Arguments&);
};

constexpr BlitKernel kBlitKernels[] = {
    {"fillBufferAligned", fill_buffer},
    {"fillBufferAligned2D", fill_buffer_2d},
    {"copyBuffer", copy_buffer},
    {"copyBufferAligned", copy_buffer_aligned},
    {"copyBufferRect", copy_buffer_rect},
    {"copyBufferRectAligned", copy_buffer_rect_aligned},
    {"streamOpsWrite", stream_write},
    {"initHeap", nothing},   // device-side malloc: no kernel of ours calls it
    {"gwsInit", nothing},    // grid-wide barrier: no kernel of ours waits at it
    {"scheduler", nothing},  // OpenCL device queues
};

}  // namespace

bool is_blit_name(const std::string& name) {
  return name.compare(0, sizeof kPrefix - 1, kPrefix) == 0;
}

bool is_stream_wait(const Kernel& kernel) {
  return kernel.is_blit && kernel.name == "__amd_rocclr_streamOpsWait";
}

uint64_t run_blit(const Kernel& kernel, const void* kernarg, bool (*give_up)(void*), void* context) {
  const Arguments arguments(kernarg);
  if (is_stream_wait(kernel)) {
    // Plain memory that host or device write without a notification, so it must be polled.
    while (!stream_condition_holds(arguments) && !give_up(context))
      sleep_until(now_ns() + kBlitPollNs);
    return 0;
  }
  const char* name = kernel.name.c_str() + sizeof kPrefix - 1;
  for (const BlitKernel& blit : kBlitKernels) {
    if (std::strcmp(blit.name, name) == 0) return blit.run(kernel, arguments);
  }
  not_implemented(kernel.name.c_str());
  return 0;
}

}  // namespace softgpu
