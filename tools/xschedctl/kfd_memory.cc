#include "tools/xschedctl/kfd_memory.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>

#include "tools/xschedctl/file_text.h"

namespace xschedd::ctl {
namespace {

namespace fs = std::filesystem;

// "0000:c1:00.0". KFD packs bus, device and function into the low 16 bits of `location`.
std::string AddressOf(std::uint64_t domain, std::uint64_t location) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, location >> 8 & 0xff, location >> 3 & 0x1f, location & 0x7);
}

// The daemon's names of GPUs and their partitions, by KFD's gpu_id. Partitions are numbered in the order of their
// nodes, as the daemon numbers them.
std::map<std::string, std::string> DevicesByGpuId(const fs::path& kfd) {
  std::map<std::string, std::string> devices;
  std::map<std::string, unsigned> partitions;  // found so far, by address
  std::error_code error;
  const fs::path nodes = kfd / "topology" / "nodes";
  // Nodes are numbered without gaps.
  for (unsigned node = 0; fs::exists(nodes / std::to_string(node), error); ++node) {
    const fs::path folder = nodes / std::to_string(node);
    std::map<std::string, std::uint64_t> properties;
    std::istringstream lines(FileText(folder / "properties"));
    std::string key;
    std::uint64_t value = 0;
    while (lines >> key >> value)
      properties[key] = value;
    if (properties["simd_count"] == 0) continue;  // a processor
    std::string id = FileText(folder / "gpu_id");
    id.erase(id.find_last_not_of(" \n") + 1);
    const std::string address = AddressOf(properties["domain"], properties["location_id"]);
    const unsigned partition = partitions[address]++;
    devices[id] = partition == 0 ? address : fmt::format("{}/{}", address, partition);
  }
  return devices;
}

}  // namespace

void AddKfdMemory(const std::string& root, DeviceMemory& memory) {
  constexpr std::string_view kPrefix = "vram_";
  const fs::path kfd = root + "/sys/class/kfd/kfd";
  const std::map<std::string, std::string> devices = DevicesByGpuId(kfd);
  std::error_code error;
  for (fs::directory_iterator process(kfd / "proc", error), end; !error && process != end; process.increment(error)) {
    const std::uint64_t pid = std::strtoull(process->path().filename().c_str(), nullptr, 10);
    std::error_code gone;
    for (fs::directory_iterator file(process->path(), gone); !gone && file != end; file.increment(gone)) {
      const std::string name = file->path().filename();
      if (!name.starts_with(kPrefix)) continue;
      const auto device = devices.find(name.substr(kPrefix.size()));
      const std::string text = FileText(file->path());
      if (device == devices.end() || text.empty()) continue;
      memory.Add(pid, device->second, std::strtoull(text.c_str(), nullptr, 10));
    }
  }
}

}  // namespace xschedd::ctl
