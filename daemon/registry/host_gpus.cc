#include "daemon/registry/host_gpus.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "common/unique_fd.h"
#include "daemon/registry/limits.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

constexpr std::size_t kMaxTextBytes = 8192;
constexpr std::string_view kAmd = "amd";
constexpr std::string_view kNvidia = "nvidia";
// Where a process has more descriptors, the driver's is among the first, since the runtime opens it when it starts.
// Reading more would take too much of the daemon's time.
constexpr int kMaxListedDescriptors = 4096;
// Where the kernel does not say: NVIDIA divides a GPU into at most 7 partitions, AMD into at most 8.
constexpr std::uint32_t kGuessedPartitions = 8;

// "folder/", followed by the parts without separators.
template <typename... Parts>
std::string In(const std::string& folder, const Parts&... parts) {
  std::string path = folder;
  path += '/';
  (path.append(parts), ...);
  return path;
}

std::string Read(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.IsValid()) return {};
  std::string text(kMaxTextBytes, '\0');
  const ssize_t size = ::read(file.Get(), text.data(), text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  return text;
}

std::uint64_t Number(std::string_view text, int base) {
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() ? value : 0;
}

// At most `most` names of a folder. `error_number`: why it could not be read; 0: it was read.
std::vector<std::string> Entries(const std::string& folder, std::size_t most, int& error_number) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  error_number = open == nullptr ? errno : 0;
  if (open == nullptr) return names;
  while (const dirent* entry = ::readdir(open.get())) {
    if (entry->d_name[0] == '.') continue;
    names.emplace_back(entry->d_name);
    if (names.size() >= most) break;
  }
  return names;
}

// From lines of "key value".
std::map<std::string, std::uint64_t> Properties(const std::string& text) {
  std::map<std::string, std::uint64_t> properties;
  std::istringstream lines(text);
  std::string key;
  std::uint64_t value = 0;
  while (lines >> key >> value)
    properties[key] = value;
  return properties;
}

// As in KFD: bus, device and function, in the low 16 bits. (From Linux 6.6, KFD's own has the partition above them.)
std::uint64_t LocationOf(const std::string& address) {
  const std::uint64_t bus = Number(std::string_view(address).substr(5, 2), 16);
  const std::uint64_t device = Number(std::string_view(address).substr(8, 2), 16);
  const std::uint64_t function = Number(std::string_view(address).substr(11, 1), 16);
  return bus << 8 | device << 3 | function;
}

// The major numbers of the device files of the vendor's driver, from the text of /proc/devices.
std::set<unsigned> Majors(const std::string& devices, std::string_view vendor) {
  std::set<unsigned> majors;
  std::istringstream lines(devices.substr(0, devices.find("Block devices")));
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    unsigned major = 0;
    std::string name;
    if (!(words >> major >> name)) continue;
    const bool fits = vendor == kAmd ? name == "kfd" || name == "drm" : name.starts_with("nvidia");
    if (fits) majors.insert(major);
  }
  return majors;
}

// The value of `key` in a line "Key:  value".
std::string Field(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with(key)) continue;
    line.erase(0, line.find_first_not_of(" \t", key.size()));
    return line;
  }
  return {};
}

// How many MIG instances the NVIDIA GPU with this minor number has; 1: it is whole, 0: it cannot be seen.
std::uint32_t MigPartitions(const std::string& root, const std::string& minor) {
  const std::string folder = root + "/proc/driver/nvidia/capabilities/gpu" + minor;
  int error_number = 0;
  if (Entries(folder, 1, error_number); error_number != 0) return 0;
  std::uint32_t instances = 0;
  // Not there while the GPU is whole.
  for (const std::string& gpu_instance : Entries(folder + "/mig", kMaxTextBytes, error_number)) {
    if (!gpu_instance.starts_with("gi")) continue;
    int ignored = 0;
    for (const std::string& part : Entries(In(folder, "mig/", gpu_instance), kMaxTextBytes, ignored))
      instances += part.starts_with("ci") ? 1 : 0;
  }
  return std::max<std::uint32_t>(instances, 1);
}

// Adds to `claimed` which partition it is, if the kernel says so. A whole GPU has one name, whatever uuids clients
// give.
void SetPlace(const HostGpu& gpu, NewDevice& claimed) {
  if (gpu.partitions == 1) claimed.uuid.clear();
  if (gpu.partitions <= 1 || gpu.unique_ids.empty()) return;
  constexpr std::string_view kPrefix = "GPU-";  // ROCm's, followed by the number in hexadecimal digits
  if (!claimed.uuid.starts_with(kPrefix)) return;
  const std::uint64_t id = Number(std::string_view(claimed.uuid).substr(kPrefix.size()), 16);
  const auto found = std::find(gpu.unique_ids.begin(), gpu.unique_ids.end(), id);
  if (found == gpu.unique_ids.end()) return;
  const auto place = found - gpu.unique_ids.begin();
  if (place != 0) claimed.pci_address += "/" + std::to_string(place);
  claimed.uuid.clear();
}

}  // namespace

bool IsSelfTestDevice(const std::string& address) {
  return address.starts_with("ffff:");
}

std::optional<HostGpu> HostGpus::Find(const std::string& address) const {
  const std::string folder = root_ + "/sys/bus/pci/devices/" + address;
  const std::string vendor_id = Read(folder + "/vendor");
  const std::uint64_t base_class = Number(Read(folder + "/class"), 16) >> 16;
  // A display controller, or a processing accelerator.
  if (base_class != 0x03 && base_class != 0x12) return std::nullopt;
  HostGpu gpu;
  const std::uint64_t vendor = Number(vendor_id, 16);
  if (vendor == 0x1002) gpu.vendor = kAmd;
  if (vendor == 0x10de) gpu.vendor = kNvidia;
  if (gpu.vendor.empty()) return std::nullopt;

  if (gpu.vendor == kNvidia) {
    const std::string text = Read(root_ + "/proc/driver/nvidia/gpus/" + address + "/information");
    gpu.name = Field(text, "Model:");
    gpu.partitions = MigPartitions(root_, Field(text, "Device Minor:"));
  } else {
    gpu.name = Read(folder + "/product_name");
    const std::string nodes = root_ + "/sys/class/kfd/kfd/topology/nodes";
    int error_number = 0;
    std::vector<std::string> numbers = Entries(nodes, kMaxTextBytes, error_number);
    std::sort(numbers.begin(), numbers.end(),
              [](const std::string& a, const std::string& b) { return Number(a, 10) < Number(b, 10); });
    for (const std::string& node : numbers) {
      auto properties = Properties(Read(In(nodes, node, "/properties")));
      const bool is_here = properties["simd_count"] != 0 && properties["domain"] == Number(address.substr(0, 4), 16) &&
                           (properties["location_id"] & 0xffff) == LocationOf(address);
      if (!is_here) continue;
      ++gpu.partitions;
      gpu.unique_ids.push_back(properties["unique_id"]);
      if (properties["simd_per_cu"] != 0) {
        gpu.compute_units = static_cast<std::uint32_t>(properties["simd_count"] / properties["simd_per_cu"]);
      }
      if (gpu.name.empty()) gpu.name = Read(In(nodes, node, "/name"));
    }
  }
  const std::set<std::uint64_t> distinct(gpu.unique_ids.begin(), gpu.unique_ids.end());
  if (distinct.size() != gpu.unique_ids.size() || distinct.contains(0)) gpu.unique_ids.clear();
  if (gpu.name.empty()) gpu.name = vendor_id.substr(2) + ":" + Read(folder + "/device").substr(2);
  return gpu;
}

std::string HostGpus::UuidOf(const std::string& address) const {
  const std::string whole = address.substr(0, address.find('/'));
  const std::string of_nvidia = Field(Read(root_ + "/proc/driver/nvidia/gpus/" + whole + "/information"), "GPU UUID:");
  // Before its first use, the driver does not know it: "GPU-????????-????-...".
  if (!of_nvidia.empty()) return of_nvidia.find('?') == std::string::npos ? of_nvidia : std::string();
  const std::string of_amd = Read(root_ + "/sys/bus/pci/devices/" + whole + "/unique_id");
  return of_amd.empty() ? of_amd : "GPU-" + of_amd;
}

std::string HostGpus::AddressOf(const std::string& device_file) const {
  constexpr std::string_view kOfNvidia = "/dev/nvidia";
  constexpr std::string_view kOfDrm = "/dev/dri/";
  if (device_file.starts_with(kOfDrm)) {
    const std::string link = root_ + "/sys/class/drm/" + device_file.substr(kOfDrm.size()) + "/device";
    char target[256];
    const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
    const std::string_view path(target, length > 0 ? static_cast<std::size_t>(length) : 0);
    return std::string(path.substr(path.rfind('/') + 1));
  }
  if (!device_file.starts_with(kOfNvidia)) return {};
  const std::string minor = device_file.substr(kOfNvidia.size());
  const std::string gpus = root_ + "/proc/driver/nvidia/gpus";
  int error_number = 0;
  for (std::string& address : Entries(gpus, kMaxTextBytes, error_number))
    if (Field(Read(In(gpus, address, "/information")), "Device Minor:") == minor) return std::move(address);
  return {};
}

Result<bool> HostGpus::IsUsedBy(pid_t pid, const std::string& vendor) const {
  // KFD lists the processes that have it open; reading that list needs no right over the process.
  struct stat listed {};
  const std::string kfds_entry = root_ + "/sys/class/kfd/kfd/proc/" + std::to_string(pid);
  if (vendor == kAmd && ::stat(kfds_entry.c_str(), &listed) == 0) return true;
  const std::set<unsigned> majors = Majors(Read(root_ + "/proc/devices"), vendor);
  const std::string folder = root_ + "/proc/" + std::to_string(pid) + "/fd";
  int error_number = 0;
  const std::vector<std::string> descriptors = Entries(folder, kMaxListedDescriptors, error_number);
  if (error_number != 0) {
    return Fail("the daemon cannot see what pid " + std::to_string(pid) + " has open: " + std::strerror(error_number),
                "start xschedd through its systemd unit, which gives it CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE");
  }
  for (const std::string& descriptor : descriptors) {
    const std::string path = In(folder, descriptor);
    // Only what the kernel names as a device file is examined: a file system of the process's own (FUSE) could answer
    // late, or never. The name alone proves nothing.
    char target[64];
    const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
    if (length <= 0 || std::string_view(target, static_cast<std::size_t>(length)).find("/dev/") == std::string::npos) {
      continue;
    }
    struct statx status {};
    if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0) continue;
    if (S_ISCHR(status.stx_mode) && majors.contains(status.stx_rdev_major)) return true;
  }
  return false;
}

Result<NewDevice> HostGpus::Confirm(pid_t pid, NewDevice claimed) const {
  std::transform(claimed.pci_address.begin(), claimed.pci_address.end(), claimed.pci_address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t slash = claimed.pci_address.find('/');
  const std::string address = claimed.pci_address.substr(0, slash);
  const std::optional<HostGpu> gpu = Find(address);
  if (!gpu) {
    return Fail("this machine has no GPU " + address,
                "name one of its GPUs; for a software GPU, start xschedd with --software-gpu");
  }
  claimed.max_partitions = gpu->partitions != 0 ? gpu->partitions : kGuessedPartitions;
  const std::uint64_t partition =
      slash == std::string::npos ? 0 : Number(std::string_view(claimed.pci_address).substr(slash + 1), 10);
  if (partition >= claimed.max_partitions) {
    return Fail("GPU " + address + " has no partition " + std::to_string(partition),
                "name a partition from 0 to " + std::to_string(claimed.max_partitions - 1));
  }
  const auto is_used = IsUsedBy(pid, gpu->vendor);
  if (!is_used) return tl::unexpected(is_used.error());
  if (!*is_used) {
    return Fail("pid " + std::to_string(pid) + " has no device file of GPU " + address + "'s driver open",
                "attach the device once the program uses it");
  }
  if (slash == std::string::npos) SetPlace(*gpu, claimed);
  claimed.vendor = gpu->vendor;
  claimed.name = CleanText(gpu->name, kMaxNameBytes);
  if (gpu->compute_units != 0) claimed.compute_units = gpu->compute_units;
  return claimed;
}

}  // namespace xschedd
