#include "tools/xschedctl/device_memory.h"

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/unit/daemon/folder.h"
#include "tools/xschedctl/kfd_memory.h"
#include "tools/xschedctl/nvml_memory.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/render_text.h"

namespace xschedd::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

v1::ListClientsResponse OneClient() {
  v1::ListClientsResponse answer;
  v1::Client& client = *answer.add_clients();
  client.set_pid(4711);
  client.add_devices()->set_device("0000:c1:00.0");
  return answer;
}

TEST_CASE("memory is looked up by process and device") {
  DeviceMemory memory;
  memory.Add(1, "0000:c1:00.0", 5);
  memory.Add(1, "0000:c1:00.0/1", 7);
  memory.AddToGpu(2, "0000:06:00.0", 11);
  CHECK(memory.Of(1, "0000:c1:00.0") == 5);
  CHECK(memory.Of(1, "0000:c1:00.0/1") == 7);
  CHECK(memory.Of(1, "0000:c1:00.0/2") == std::nullopt);
  CHECK(memory.Of(1) == 12);
  CHECK(memory.Of(2, "0000:06:00.0") == 11);
  CHECK(memory.Of(2, "0000:06:00.0/3") == 11);
  CHECK(memory.Of(2, "0000:07:00.0") == std::nullopt);
  CHECK(memory.Of(3) == std::nullopt);
}

TEST_CASE("KFD's memory is shown under the daemon's names of partitions") {
  const test::Folder root;
  const fs::path kfd = fs::path(root.Path()) / "sys/class/kfd/kfd";
  Write(kfd / "topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\nlocation_id 0\n");
  Write(kfd / "topology/nodes/0/gpu_id", "0\n");
  // Two partitions of c1:00.0 (Linux puts the partition's number above the 16 bits), and a GPU in another domain.
  Write(kfd / "topology/nodes/1/properties", "simd_count 80\nlocation_id 49408\ndomain 0\n");
  Write(kfd / "topology/nodes/1/gpu_id", "41\n");
  Write(kfd / "topology/nodes/2/properties", "simd_count 80\nlocation_id 114944\ndomain 0\n");
  Write(kfd / "topology/nodes/2/gpu_id", "42\n");
  Write(kfd / "topology/nodes/3/properties", "simd_count 80\nlocation_id 1281\ndomain 2\n");
  Write(kfd / "topology/nodes/3/gpu_id", "43\n");
  Write(kfd / "proc/4711/vram_41", "1048576\n");
  Write(kfd / "proc/4711/vram_42", "0\n");
  Write(kfd / "proc/4711/sdma_41", "9\n");
  Write(kfd / "proc/4712/vram_43", "77\n");
  Write(kfd / "proc/4712/vram_99", "5\n");  // of no node
  DeviceMemory memory;
  AddKfdMemory(root.Path(), memory);
  CHECK(memory.Of(4711, "0000:c1:00.0") == kMiB);
  CHECK(memory.Of(4711, "0000:c1:00.0/1") == 0);
  CHECK(memory.Of(4712, "0002:05:00.1") == 77);
  CHECK(memory.Of(4712) == 77);
}

TEST_CASE("without a driver no memory is known") {
  const test::Folder root;
  DeviceMemory memory;
  AddKfdMemory(root.Path(), memory);
  AddNvmlMemory(memory, "libxschedd-no-such-library.so.1");
  CHECK(memory.Of(1) == std::nullopt);
  CHECK(RenderClients(OneClient(), {}, nullptr, &memory).find("MEMORY") == std::string::npos);
  CHECK(ToJson(OneClient(), &memory)["clients"][0]["devices"][0]["memory_bytes"].is_null());
}

TEST_CASE("NVML's memory is that of all processes of each GPU, where it is available") {
  DeviceMemory memory;
  AddNvmlMemory(memory, XSCHEDD_NVML_STAND_IN);
  CHECK(memory.Of(1000, "0000:06:00.0") == kMiB);
  CHECK(memory.Of(1001, "0000:06:00.0") == std::nullopt);
  CHECK(memory.Of(1001, "0000:c1:00.0") == 2 * kMiB);
  CHECK(memory.Of(1099, "0000:c1:00.0") == 100 * kMiB);
}

TEST_CASE("ps shows memory where it is known, of unscheduled programs too") {
  DeviceMemory memory;
  memory.Add(4711, "0000:c1:00.0", 3 * 512 * kMiB);
  memory.Add(9, "0000:c1:00.0", 200 * kMiB);
  const UnscheduledProcesses others{.processes = {{.pid = 9, .uid = 0, .command = "train", .reason = ""},
                                                  {.pid = 10, .uid = 0, .command = "other", .reason = ""}}};
  const std::string text = RenderClients(OneClient(), {}, &others, &memory);
  CHECK(text.find("MEMORY") != std::string::npos);
  CHECK(text.find("1.50 GiB") != std::string::npos);
  CHECK(text.find("200 MiB") != std::string::npos);
  CHECK(ToJson(OneClient(), &memory)["clients"][0]["devices"][0]["memory_bytes"] == 3 * 512 * kMiB);
  const Json listed = ToJson(others, &memory)["processes"];
  CHECK(listed[0]["memory_bytes"] == 200 * kMiB);
  CHECK(listed[1]["memory_bytes"].is_null());
}

}  // namespace
}  // namespace xschedd::ctl
