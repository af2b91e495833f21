// Settings from outside the program: host functions from SOFTGPU_KERNELS, durations from SOFTGPU_DURATIONS times
// SOFTGPU_CLOCK_SCALE, and the trace. Arguments: the kernel library, the file of durations.
#include <fstream>

#include "device_test.h"

__global__ void scale_by(float* values, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

namespace {

constexpr int kCount = 1'000;

std::string field(const std::string& line, const std::string& name) {
  const size_t at = line.find("\"" + name + "\":");
  REQUIRE(at != std::string::npos);
  return line.substr(at + name.size() + 3, line.find_first_of(",}", at) - at - name.size() - 3);
}

// The line of the kernel in this process's trace.
std::string traced_kernel(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.find("scale_by") != std::string::npos) return line;
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  REQUIRE(argc == 3);
  const std::string prefix = "/tmp/softgpu-test-" + std::to_string(getpid());
  const std::string trace = prefix + "." + std::to_string(getpid()) + ".jsonl";
  setenv("SOFTGPU_KERNELS", argv[1], 1);
  setenv("SOFTGPU_DURATIONS", argv[2], 1);
  setenv("SOFTGPU_CLOCK_SCALE", "2", 1);
  setenv("SOFTGPU_TRACE", prefix.c_str(), 1);

  std::vector<float> host(kCount, 3.0f);
  float* device = nullptr;
  HIP(hipMalloc(&device, kCount * sizeof(float)));
  HIP(hipMemcpy(device, host.data(), kCount * sizeof(float), hipMemcpyHostToDevice));
  scale_by<<<kFullGrid, kBlock>>>(device, kCount, 2.5f);
  HIP(hipMemcpy(host.data(), device, kCount * sizeof(float), hipMemcpyDeviceToHost));
  REQUIRE(host[0] == 7.5f && host[kCount - 1] == 7.5f);

  const std::string line = traced_kernel(trace);
  unlink(trace.c_str());
  REQUIRE(field(line, "kind") == "\"kernel\"" && field(line, "cus") == "80");
  REQUIRE(std::stoull(field(line, "end_ns")) - std::stoull(field(line, "start_ns")) == 6'000'000);
  HIP(hipFree(device));
}
