#include "tools/xschedctl/device_memory.h"

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/unit/daemon/folder.h"
#include "tools/xschedctl/kfd_memory.h"
#include "tools/xschedctl/memory_shown.h"
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

TEST_CASE("memory that no driver reports is the shim's account, marked as such") {
  v1::ListClientsResponse answer = OneClient();
  v1::ClientDevice& device = *answer.mutable_clients(0)->mutable_devices(0);
  DeviceMemory memory;
  CHECK(RenderClients(answer, {}, nullptr, &memory).find("MEMORY") == std::string::npos);
  device.set_memory_bytes(3 * 512 * kMiB);
  std::string text = RenderClients(answer, {}, nullptr, &memory);
  CHECK(text.find(" ~1.50 GiB ") != std::string::npos);
  CHECK(text.find("\n~ by its shim's own account: no driver reports its memory here\n") != std::string::npos);
  CHECK(text.find("MEM-LIMIT") == std::string::npos);
  Json json = ToJson(answer, &memory)["clients"][0];
  CHECK(json["devices"][0]["memory_bytes"].is_null());
  CHECK(json["devices"][0]["memory_counted_bytes"] == 3 * 512 * kMiB);
  CHECK(json["devices"][0]["memory_limit_bytes"].is_null());
  CHECK(json["memory_limit"].is_null());
  // Where a driver reports it, that is shown.
  memory.Add(4711, "0000:c1:00.0", 2048 * kMiB);
  device.set_memory_limit(24576 * kMiB);
  device.set_memory_refused(3);
  v1::MemoryLimit& limit = *answer.mutable_clients(0)->mutable_memory_limit();
  limit.set_bytes(32768 * kMiB);
  limit.set_source(v1::PRIORITY_SOURCE_CLAIM);
  limit.set_is_shared(true);
  text = RenderClients(answer, {}, nullptr, &memory);
  CHECK(text.find("  MEMORY  MEM-LIMIT  ") != std::string::npos);
  CHECK(text.find(" 2.00 GiB   24.0 GiB ") != std::string::npos);
  CHECK(text.find('~') == std::string::npos);
  json = ToJson(answer, &memory)["clients"][0];
  CHECK(json["devices"][0]["memory_bytes"] == 2048 * kMiB);
  CHECK(json["devices"][0]["memory_limit_bytes"] == 24576 * kMiB);
  CHECK(json["devices"][0]["memory_refused"] == 3);
  CHECK(json["memory_limit"]["bytes"] == 32768 * kMiB);
  CHECK(json["memory_limit"]["source"] == "claim");
  CHECK(json["memory_limit"]["is_shared"] == true);
}

TEST_CASE("two figures differ if more than a context and a tenth lies between them") {
  const struct {
    std::uint64_t reported, counted;  // MiB
    bool differs;
  } kCases[] = {
      {0, 0, false},           {500, 0, false},  // a context and nothing else
      {1024, 0, false},                          // and 512 MiB of doubt
      {1025, 0, true},                           //
      {20'000, 19'500, false},                   //
      {20'000, 17'500, false},                   // a context, and a tenth
      {20'000, 17'400, true},                    //
      {80'000, 71'488, false},                   //
      {80'000, 71'487, true},                    //
      {0, 512, false},          // the driver reports less than the shim counts: there is no context to expect
      {0, 513, true},           //
      {20'000, 22'000, false},  //
      {20'000, 22'001, true},   //
      {1, 1ull << 43, true},    // a client that lies
  };
  for (const auto& [reported, counted, differs] : kCases) {
    INFO(reported << " " << counted);
    CHECK(Differs(reported * kMiB, counted * kMiB) == differs);
  }
}

TEST_CASE("ps has one line where the driver and the shims of a process disagree") {
  v1::ListClientsResponse answer = OneClient();
  answer.mutable_clients(0)->mutable_devices(0)->set_memory_bytes(10 * 1024 * kMiB);
  DeviceMemory memory;
  memory.Add(4711, "0000:c1:00.0", 30 * 1024 * kMiB);
  CHECK(
      RenderClients(answer, {}, nullptr, &memory)
          .find("\npid 4711 on 0000:c1:00.0: the driver reports 30.0 GiB, its shim counts 10.0 GiB: the rest is memory "
                "that its shim does not see") != std::string::npos);
  // A process's sessions count together.
  *answer.add_clients() = answer.clients(0);
  answer.mutable_clients(1)->mutable_devices(0)->set_memory_bytes(19 * 1024 * kMiB);
  CHECK(RenderClients(answer, {}, nullptr, &memory).find("the driver reports") == std::string::npos);
  answer.mutable_clients(1)->mutable_devices(0)->set_memory_bytes(30 * 1024 * kMiB);
  CHECK(RenderClients(answer, {}, nullptr, &memory)
            .find("the driver reports 30.0 GiB, its shim counts 40.0 GiB: its shim missed") != std::string::npos);
}

}  // namespace
}  // namespace xschedd::ctl
