// Memory and its order with kernels: pools and allocation in stream order, managed memory, symbols, and copies and
// fills of every shape between them.
#include <cstring>

#include "values.h"

using differential::Lane;
using differential::Value;

__device__ Value table[differential::kCount];
__constant__ Value constants[64];

namespace {

// Allocated, used and freed in stream order, from the default pool and from one of its own; freed on another stream
// than it came from, behind an event.
void Pools(Lane& lane, int device) {
  hipStream_t streams[2];
  hipEvent_t event;
  hipMemPool_t own = nullptr, standard = nullptr;
  int supported = 0;
  CALL(lane, hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, device));
  lane.Number("pools", supported);
  for (hipStream_t& stream : streams)
    CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  CALL(lane, hipEventCreateWithFlags(&event, hipEventDisableTiming));
  CALL(lane, hipDeviceGetDefaultMemPool(&standard, device));
  hipMemPoolProps properties{};
  properties.allocType = hipMemAllocationTypePinned;
  properties.location.type = hipMemLocationTypeDevice;
  properties.location.id = device;
  CALL(lane, hipMemPoolCreate(&own, &properties));
  std::uint64_t threshold = 1 << 20;
  CALL(lane, hipMemPoolSetAttribute(own, hipMemPoolAttrReleaseThreshold, &threshold));

  std::vector<Value> host(differential::kCount);
  for (unsigned step = 0; step < 12; ++step) {
    const unsigned s = lane.Random(2);
    void* memory = nullptr;
    if (lane.Random(2)) {
      CALL(lane, hipMallocAsync(&memory, differential::kBytes, streams[s]));
    } else {
      CALL(lane, hipMallocFromPoolAsync(&memory, differential::kBytes, own, streams[s]));
    }
    auto* values = static_cast<Value*>(memory);
    CALL(lane, hipMemsetAsync(values, static_cast<int>(step), differential::kBytes, streams[s]));
    LAUNCH(lane,
           scale_add<<<2, 128, 0, streams[s]>>>(values, values, step, differential::kCount, 300 + lane.Random(500)));
    CALL(lane, hipMemcpyAsync(host.data(), values, differential::kBytes, hipMemcpyDeviceToHost, streams[s]));
    unsigned freed_on = s;
    if (lane.Random(3) == 0) {
      freed_on = 1 - s;
      CALL(lane, hipEventRecord(event, streams[s]));
      CALL(lane, hipStreamWaitEvent(streams[freed_on], event, 0));
    }
    CALL(lane, hipFreeAsync(values, streams[freed_on]));
    CALL(lane, hipStreamSynchronize(streams[s]));
    lane.Data("from a pool", host.data(), differential::kBytes);
    CHECK(lane, host[0] == e2e::Step(step * 0x01010101, step * 0x01010101, step));
    if (lane.Random(4) == 0) CALL(lane, hipMemPoolTrimTo(own, 0));
  }
  CALL(lane, hipFreeAsync(nullptr, streams[0]));
  CALL(lane, hipMallocAsync(nullptr, 16, streams[0]));
  CALL(lane, hipStreamSynchronize(streams[0]));
  CALL(lane, hipStreamSynchronize(streams[1]));
  // 5.2.3 never comes back from the destruction of a stream while a pool keeps freed memory.
  CALL(lane, hipMemPoolTrimTo(own, 0));
  CALL(lane, hipMemPoolTrimTo(standard, 0));
  CALL(lane, hipMemPoolDestroy(own));
  CALL(lane, hipEventDestroy(event));
  for (const hipStream_t stream : streams)
    CALL(lane, hipStreamDestroy(stream));
}

// One allocation that kernels and the host use in turns.
void Managed(Lane& lane, int device) {
  hipStream_t stream;
  Value* values = nullptr;
  std::vector<Value> model(differential::kCount, 1);
  CALL(lane, hipStreamCreate(&stream));
  if (CALL(lane, hipMallocManaged(reinterpret_cast<void**>(&values), differential::kBytes, hipMemAttachGlobal)) !=
      hipSuccess)
    return;
  std::memcpy(values, model.data(), differential::kBytes);
  CALL(lane, hipMemAdvise(values, differential::kBytes, hipMemAdviseSetPreferredLocation, device));
  for (unsigned step = 0; step < 6; ++step) {
    if (step % 2 == 0) CALL(lane, hipMemPrefetchAsync(values, differential::kBytes, device, stream));
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values, values, step, differential::kCount, 500));
    for (Value& value : model)
      value = e2e::Step(value, value, step);
    if (step % 3 == 0) CALL(lane, hipStreamAttachMemAsync(stream, values, 0, hipMemAttachSingle));
    CALL(lane, hipStreamSynchronize(stream));
    CHECK(lane, std::memcmp(values, model.data(), differential::kBytes) == 0);
    values[step] = model[step] = step;
  }
  lane.Data("managed", values, differential::kBytes);
  int read_mostly = 77;
  CALL(lane, hipMemRangeGetAttribute(&read_mostly, sizeof read_mostly, hipMemRangeAttributeReadMostly, values,
                                     differential::kBytes));
  lane.Number("read mostly", read_mostly);
  CALL(lane, hipFree(values));
  CALL(lane, hipStreamDestroy(stream));
}

// Variables of the device: their address and size, copies both ways, blocking and not. The software GPU's kernels do
// not know them, so a kernel gets the address.
void Symbols(Lane& lane) {
  hipStream_t stream;
  void* address = nullptr;
  std::size_t size = 0;
  std::vector<Value> host(differential::kCount, 4), got(differential::kCount);
  CALL(lane, hipStreamCreate(&stream));
  CALL(lane, hipGetSymbolSize(&size, HIP_SYMBOL(table)));
  lane.Number("size", size);
  CALL(lane, hipGetSymbolAddress(&address, HIP_SYMBOL(table)));
  auto* values = static_cast<Value*>(address);
  CALL(lane, hipMemcpyToSymbol(HIP_SYMBOL(table), host.data(), differential::kBytes, 0, hipMemcpyHostToDevice));
  for (unsigned step = 0; step < 5; ++step) {
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values, values, step, differential::kCount, 400));
    for (Value& value : host)
      value = e2e::Step(value, value, step);
    CALL(lane, hipMemcpyToSymbolAsync(HIP_SYMBOL(table), &step, sizeof step, 4 * step, hipMemcpyHostToDevice, stream));
    CALL(lane, hipStreamSynchronize(stream));  // `step` is the host's own
    host[step] = step;
    CALL(lane, hipMemcpyFromSymbolAsync(got.data(), HIP_SYMBOL(table), differential::kBytes, 0, hipMemcpyDeviceToHost,
                                        stream));
    CALL(lane, hipStreamSynchronize(stream));
    CHECK(lane, got == host);
  }
  CALL(lane, hipMemcpyFromSymbol(got.data(), HIP_SYMBOL(table), differential::kBytes, 0, hipMemcpyDeviceToHost));
  lane.Data("symbol", got.data(), differential::kBytes);
  const Value some[64] = {1, 2, 3};
  Value back[64] = {};
  CALL(lane, hipMemcpyToSymbol(HIP_SYMBOL(constants), some, sizeof some, 0, hipMemcpyHostToDevice));
  CALL(lane, hipMemcpyFromSymbol(back, HIP_SYMBOL(constants), sizeof back, 0, hipMemcpyDeviceToHost));
  CHECK(lane, std::memcmp(some, back, sizeof some) == 0);
  CALL(lane, hipMemcpyToSymbol(HIP_SYMBOL(table), host.data(), 1 << 20, 0, hipMemcpyHostToDevice));
  CALL(lane, hipMemcpyFromSymbol(back, HIP_SYMBOL(table), 8, differential::kBytes, hipMemcpyDeviceToHost));
  CALL(lane, hipGetSymbolAddress(&address, nullptr));
  CALL(lane, hipStreamDestroy(stream));
}

// Pitched and plain memory, every kind of copy and fill, behind kernels, on the default stream or one that is not.
void Shapes(Lane& lane) {
  constexpr std::size_t kWidth = 100, kHeight = 16;
  void* pitched = nullptr;
  std::size_t pitch = 0;
  unsigned char* host = nullptr;
  hipStream_t stream;
  CALL(lane, hipStreamCreate(&stream));
  CALL(lane, hipMallocPitch(&pitched, &pitch, kWidth, kHeight));
  lane.Number("pitch", pitch);
  CALL(lane, hipHostMalloc(&host, kWidth * kHeight, 0));
  differential::Values values;
  values.Make(lane);
  for (unsigned step = 0; step < 24; ++step) {
    const hipStream_t on = lane.Random(2) ? stream : nullptr;
    LAUNCH(lane, scale_add<<<2, 128, 0, on>>>(values.device, values.device, step, differential::kCount,
                                              200 + lane.Random(600)));
    values.Step(values, step);
    const int byte = static_cast<int>(lane.Random(256));
    switch (lane.Random(9)) {
      case 0:
        CALL(lane, hipMemset2DAsync(pitched, pitch, byte, kWidth, kHeight, on));
        break;
      case 1:
        CALL(lane, hipMemset2D(pitched, pitch, byte, kWidth / 2, kHeight));
        break;
      case 2:
        CALL(lane, hipMemcpy2DAsync(pitched, pitch, values.device, 32, 32, 16, hipMemcpyDeviceToDevice, on));
        break;
      case 3:
        CALL(lane, hipMemcpy2D(host, kWidth, pitched, pitch, kWidth, kHeight, hipMemcpyDeviceToHost));
        break;
      case 4:
        CALL(lane, hipMemsetD32Async(values.device, byte, differential::kCount, on));
        values.model.assign(differential::kCount, byte);
        break;
      case 5:
        CALL(lane, hipMemsetD8(values.device, static_cast<unsigned char>(byte), differential::kBytes));
        values.Fill(static_cast<unsigned char>(byte));
        break;
      case 6: {
        hipMemcpy3DParms copy{};
        copy.srcPtr = make_hipPitchedPtr(pitched, pitch, kWidth, kHeight);
        copy.dstPtr = make_hipPitchedPtr(host, kWidth, kWidth, kHeight);
        copy.extent = make_hipExtent(kWidth, kHeight, 1);
        copy.kind = hipMemcpyDeviceToHost;
        CALL(lane, hipMemcpy3DAsync(&copy, on));
        break;
      }
      case 7: {
        const hipPitchedPtr to = make_hipPitchedPtr(pitched, pitch, kWidth, kHeight);
        CALL(lane, hipMemset3DAsync(to, byte, make_hipExtent(kWidth, kHeight, 1), on));
        break;
      }
      default:
        CALL(lane, hipMemcpyDtoD(values.device + 128, values.device, 64));
        std::copy_n(values.model.begin(), 16, values.model.begin() + 128);
        break;
    }
    if (lane.Random(5) == 0) CALL(lane, hipStreamSynchronize(on));
    CALL(lane, hipStreamSynchronize(nullptr));  // behind all of it: blocking streams and the default one
  }
  CALL(lane, hipMemcpy2D(host, kWidth, pitched, pitch, kWidth, kHeight, hipMemcpyDeviceToHost));
  lane.Data("pitched", host, kWidth * kHeight);
  values.Check(lane, "shapes");
  CALL(lane,
       hipMemcpy2DAsync(pitched, 10, values.device, 32, 32, 16, hipMemcpyDeviceToDevice, stream));  // pitch < width
  CALL(lane, hipMemcpyAsync(nullptr, values.device, 16, hipMemcpyDeviceToHost, stream));
  CALL(lane, hipMemsetAsync(nullptr, 0, 16, stream));
  CALL(lane, hipMemcpy(host, values.device, 16, static_cast<hipMemcpyKind>(77)));
  values.Free(lane);
  CALL(lane, hipFree(pitched));
  CALL(lane, hipHostFree(host));
  CALL(lane, hipStreamDestroy(stream));
}

}  // namespace

int main(int argc, char** argv) {
  setenv("HIP_MEM_POOL_SUPPORT", "1", 1);  // off by default in ROCm 5
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      CALL(lane, hipSetDevice(device));
      Pools(lane, device);
      Managed(lane, device);
      Symbols(lane);
      Shapes(lane);
    }
  }
  return run.End();
}
