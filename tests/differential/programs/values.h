// Device memory with a model on the host, and an order of kernels: what most programs of the suite check.
// Thread rule: as the lane that is passed.
#pragma once

#include <vector>

#include "tests/differential/transcript.h"

namespace differential {

inline constexpr std::uint32_t kCount = 256;
inline constexpr std::size_t kBytes = kCount * sizeof(Value);

// kCount values on the device and their expected values. The caller must order calls.
struct Values {
  Value* device = nullptr;
  std::vector<Value> model = std::vector<Value>(kCount, 0);

  void Make(Lane& lane) {
    CALL(lane, hipMalloc(&device, kBytes));
    CALL(lane, hipMemset(device, 0, kBytes));
    CALL(lane, hipStreamSynchronize(nullptr));  // a fill of device memory may return before it has finished
  }
  void Free(Lane& lane) { CALL(lane, hipFree(device)); }

  // y = 2y + x + step, as scale_add does it.
  void Step(const Values& x, Value step) {
    for (std::uint32_t i = 0; i < kCount; ++i)
      model[i] = e2e::Step(model[i], x.model[i], step);
  }
  void Fill(unsigned char byte) { model.assign(kCount, byte * 0x01010101u); }

  // The caller has waited for all work that writes them.
  void Check(Lane& lane, const char* what) {
    std::vector<Value> host(kCount);
    CALL(lane, hipMemcpy(host.data(), device, kBytes, hipMemcpyDeviceToHost));
    lane.Data(what, host.data(), kBytes);
    CHECK(lane, host == model);
  }
};

// Kernels `append` their tags to it; the model is the order in which they must run.
struct Ordered {
  Order* device = nullptr;
  std::vector<std::uint32_t> model;

  void Make(Lane& lane) {
    CALL(lane, hipMalloc(&device, sizeof(Order)));
    CALL(lane, hipMemset(device, 0, sizeof(Order)));
    CALL(lane, hipStreamSynchronize(nullptr));
  }
  void Free(Lane& lane) { CALL(lane, hipFree(device)); }

  // Launches the next one, on a stream that is ordered behind the one before.
  void Append(Lane& lane, hipStream_t stream, std::uint64_t micros) {
    const auto tag = static_cast<std::uint32_t>(model.size());
    model.push_back(tag);
    LAUNCH(lane, append<<<1, 1, 0, stream>>>(device, tag, micros));
  }

  // The caller has waited for all of them. Starts again with an empty order.
  void Check(Lane& lane, const char* what) {
    Order host{};
    CALL(lane, hipMemcpy(&host, device, sizeof host, hipMemcpyDeviceToHost));
    lane.Data(what, host);
    CHECK(lane, host.count == model.size());
    CHECK(lane, std::equal(model.begin(), model.end(), host.tags));
    model.clear();
    CALL(lane, hipMemset(device, 0, sizeof(Order)));
    CALL(lane, hipStreamSynchronize(nullptr));
  }
};

}  // namespace differential
