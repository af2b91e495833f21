// Which GPUs there are and which processes use them, on trees of files like the kernel's.
#include "daemon/registry/host_gpus.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/core.h"
#include "tests/catch.h"
#include "tests/unit/daemon/folder.h"

using namespace xschedd;
namespace fs = std::filesystem;

namespace {

constexpr const char* kAmd = "0000:c1:00.0";
constexpr const char* kNvidia = "0000:3b:00.0";
constexpr pid_t kPid = 4711;

// A machine's /sys and /proc.
class Machine {
 public:
  Machine() {
    // /dev/null, whose major number is 1, stands for every driver's device file.
    File("proc/devices", "Character devices:\n  1 kfd\n  1 nvidia-frontend\n226 none\n\nBlock devices:\n  1 nvidia\n");
    fs::create_directories(root_ + "/dev");
    fs::create_symlink("/dev/null", root_ + "/dev/kfd");
    fs::create_directories(root_ + "/proc/" + std::to_string(kPid) + "/fd");
  }

  void File(const std::string& path, const std::string& text) const {
    const fs::path whole = fs::path(root_) / path;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  void Pci(const std::string& address, const char* vendor, const char* base_class) const {
    const std::string folder = "sys/bus/pci/devices/" + address;
    File(folder + "/vendor", std::string(vendor) + "\n");
    File(folder + "/device", "0x74a2\n");
    File(folder + "/class", std::string(base_class) + "\n");
  }
  void KfdNode(int number, std::uint64_t location, std::uint64_t unique_id) const {
    const std::string folder = "sys/class/kfd/kfd/topology/nodes/" + std::to_string(number);
    File(folder + "/name", "aldebaran\n");
    File(folder + "/properties", "cpu_cores_count 0\nsimd_count 320\nsimd_per_cu 4\ndomain 0\nlocation_id " +
                                     std::to_string(location) + "\nunique_id " + std::to_string(unique_id) + "\n");
  }
  // Lets the process have this file open as descriptor `number`.
  void Opens(int number, const std::string& target) const {
    fs::create_symlink(target, root_ + "/proc/" + std::to_string(kPid) + "/fd/" + std::to_string(number));
  }
  void OpensDriver() const { Opens(3, root_ + "/dev/kfd"); }
  const std::string& Root() const { return root_; }
  HostGpus Gpus() const { return HostGpus(root_); }

 private:
  const test::Folder folder_;
  const std::string& root_ = folder_.Path();
};

NewDevice Claimed(const std::string& address, const std::string& uuid = {}) {
  return {.slot = 0, .pci_address = address, .name = "Claimed", .vendor = "nvidia", .compute_units = 7, .uuid = uuid};
}

std::string WhyNot(const HostGpus& gpus, const NewDevice& claim) {
  const auto confirmed = gpus.Confirm(kPid, claim);
  return confirmed ? "" : confirmed.error().Line();
}

}  // namespace

TEST_CASE("GPUs, their vendors and names are those that sysfs shows") {
  const Machine machine;
  CHECK(!machine.Gpus().Find(kAmd));
  machine.Pci(kAmd, "0x1002", "0x120000");
  machine.Pci(kNvidia, "0x10de", "0x030200");
  machine.Pci("0000:00:1f.0", "0x8086", "0x060100");
  machine.Pci("0000:00:02.0", "0x8086", "0x030000");
  CHECK(!machine.Gpus().Find("0000:00:1f.0"));  // a bridge
  CHECK(!machine.Gpus().Find("0000:00:02.0"));  // of a vendor without GPUs that xschedd schedules
  auto amd = machine.Gpus().Find(kAmd);
  REQUIRE(amd);
  CHECK(amd->vendor == "amd");
  CHECK(amd->name == "1002:74a2");
  CHECK(amd->compute_units == 0);
  machine.KfdNode(1, 0xc100, 77);
  machine.KfdNode(2, 0xc200, 78);
  amd = machine.Gpus().Find(kAmd);
  CHECK(amd->name == "aldebaran");
  CHECK(amd->compute_units == 80);
  CHECK(amd->partitions == 1);
  machine.File("sys/bus/pci/devices/" + std::string(kAmd) + "/product_name", "AMD Instinct MI308X\n");
  CHECK(machine.Gpus().Find(kAmd)->name == "AMD Instinct MI308X");
  const auto nvidia = machine.Gpus().Find(kNvidia);
  REQUIRE(nvidia);
  CHECK(nvidia->vendor == "nvidia");
  machine.File("proc/driver/nvidia/gpus/" + std::string(kNvidia) + "/information",
               "Model: \t\t NVIDIA H200\nIRQ:   \t\t 11\nDevice Minor: \t 3\n");
  CHECK(machine.Gpus().Find(kNvidia)->name == "NVIDIA H200");
  CHECK(machine.Gpus().Find(kNvidia)->partitions == 0);
  machine.File("proc/driver/nvidia/capabilities/gpu3/fabric", "");
  CHECK(machine.Gpus().Find(kNvidia)->partitions == 1);
  machine.File("proc/driver/nvidia/capabilities/gpu3/mig/gi1/ci0/access", "");
  machine.File("proc/driver/nvidia/capabilities/gpu3/mig/gi2/ci0/access", "");
  CHECK(machine.Gpus().Find(kNvidia)->partitions == 2);
}

TEST_CASE("a GPU's uuid comes from its driver, also for a partition") {
  const Machine machine;
  machine.Pci(kAmd, "0x1002", "0x120000");
  CHECK(machine.Gpus().UuidOf(kAmd).empty());
  machine.File("sys/bus/pci/devices/" + std::string(kAmd) + "/unique_id", "724c3b58bf67050e\n");
  CHECK(machine.Gpus().UuidOf(kAmd) == "GPU-724c3b58bf67050e");
  CHECK(machine.Gpus().UuidOf(std::string(kAmd) + "/3") == "GPU-724c3b58bf67050e");
  const std::string information = "proc/driver/nvidia/gpus/" + std::string(kNvidia) + "/information";
  machine.File(information, "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-" + std::string(8, '?') + "-0000\n");
  CHECK(machine.Gpus().UuidOf(kNvidia).empty());
  machine.File(information, "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-5c2f9b1e-0001-0002-0003-000000000004\n");
  CHECK(machine.Gpus().UuidOf(kNvidia) == "GPU-5c2f9b1e-0001-0002-0003-000000000004");
}

TEST_CASE("a device file leads to its GPU") {
  const Machine machine;
  machine.File("proc/driver/nvidia/gpus/" + std::string(kNvidia) + "/information", "Device Minor: \t 3\n");
  fs::create_directories(machine.Root() + "/sys/class/drm/renderD128");
  fs::create_symlink("../../../" + std::string(kAmd), machine.Root() + "/sys/class/drm/renderD128/device");
  const HostGpus gpus = machine.Gpus();
  CHECK(gpus.AddressOf("/dev/nvidia3") == kNvidia);
  CHECK(gpus.AddressOf("/dev/dri/renderD128") == kAmd);
  for (const char* other : {"/dev/nvidia4", "/dev/nvidiactl", "/dev/dri/renderD129", "/dev/null", ""})
    CHECK(gpus.AddressOf(other).empty());
}

TEST_CASE("a device is accepted if the machine has it and the process has opened its driver") {
  const Machine machine;
  machine.Pci(kAmd, "0x1002", "0x120000");
  const HostGpus gpus = machine.Gpus();
  CHECK(WhyNot(gpus, Claimed("0000:c2:00.0")).find("this machine has no GPU 0000:c2:00.0; ") == 0);
  CHECK(WhyNot(gpus, Claimed(kAmd)).find("pid 4711 has no device file of GPU 0000:c1:00.0's driver open; ") == 0);
  // Neither another device file nor a regular file of that name counts.
  machine.Opens(0, "/dev/full/..");
  machine.Opens(1, machine.Root() + "/dev/nothing");
  machine.File("dev/nvidia0", "a file");
  machine.Opens(2, machine.Root() + "/dev/nvidia0");
  CHECK(!WhyNot(gpus, Claimed(kAmd)).empty());
  machine.OpensDriver();
  const auto confirmed = gpus.Confirm(kPid, Claimed("0000:C1:00.0"));
  REQUIRE(confirmed);
  CHECK(confirmed->pci_address == kAmd);
  CHECK(confirmed->vendor == "amd");  // whatever was claimed
  CHECK(confirmed->name == "1002:74a2");
}

TEST_CASE("a device file of another vendor's driver does not count") {
  const Machine machine;
  machine.File("proc/devices", "Character devices:\n  1 nvidia-frontend\n");
  machine.Pci(kAmd, "0x1002", "0x120000");
  machine.Pci(kNvidia, "0x10de", "0x030200");
  machine.OpensDriver();
  CHECK(machine.Gpus().IsUsedBy(kPid, "nvidia").value());
  CHECK(!machine.Gpus().IsUsedBy(kPid, "amd").value());
}

TEST_CASE("KFD's own list of processes is enough, and a process that the daemon may not see is refused") {
  const Machine machine;
  machine.Pci(kAmd, "0x1002", "0x120000");
  fs::remove_all(machine.Root() + "/proc/4711");
  CHECK(WhyNot(machine.Gpus(), Claimed(kAmd)).find("the daemon cannot see what pid 4711 has open: ") == 0);
  machine.File("sys/class/kfd/kfd/proc/4711/pasid", "32769\n");
  CHECK(WhyNot(machine.Gpus(), Claimed(kAmd)).empty());
}

TEST_CASE("a whole GPU has one name, whatever uuids clients report; partitions are the kernel's") {
  const Machine machine;
  machine.Pci(kAmd, "0x1002", "0x120000");
  machine.OpensDriver();
  machine.KfdNode(1, 0xc100, 0xabc);
  CHECK(machine.Gpus().Confirm(kPid, Claimed(kAmd, "GPU-invented"))->uuid.empty());
  CHECK(WhyNot(machine.Gpus(), Claimed("0000:c1:00.0/1")) ==
        "GPU 0000:c1:00.0 has no partition 1; name a partition from 0 to 0");
  // Since Linux 6.6 the number of the partition is in the bits above the address.
  machine.KfdNode(2, 0x1000'c100, 0xdef);
  const auto second = machine.Gpus().Confirm(kPid, Claimed(kAmd, "GPU-0000000000000def"));
  REQUIRE(second);
  CHECK(second->pci_address == "0000:c1:00.0/1");
  CHECK(machine.Gpus().Confirm(kPid, Claimed(kAmd, "GPU-0000000000000abc"))->pci_address == kAmd);
  CHECK(WhyNot(machine.Gpus(), Claimed("0000:c1:00.0/1")).empty());
  CHECK(WhyNot(machine.Gpus(), Claimed("0000:c1:00.0/2")).find("has no partition 2") != std::string::npos);
  // If the kernel does not distinguish them, the first clients give the names, and there are no more of them than
  // partitions.
  machine.KfdNode(2, 0x1000'c100, 0xabc);
  Registry registry;
  NewClient fresh;
  Client& client = registry.Add(std::move(fresh), 0);
  std::vector<std::string> names;
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    NewDevice device = machine.Gpus().Confirm(kPid, Claimed(kAmd, "GPU-" + std::to_string(slot))).value();
    device.slot = slot;
    names.push_back(registry.Attach(client, std::move(device)).value()->device->pci_address);
  }
  CHECK(names == std::vector<std::string>{kAmd, "0000:c1:00.0/1", kAmd, kAmd});
}

TEST_CASE("one client's report does not make an AMD GPU's tenants take turns") {
  const Machine machine;
  machine.Pci(kAmd, "0x1002", "0x120000");
  machine.OpensDriver();
  boost::asio::io_context io;
  Core core(io, {}, {}, machine.Gpus());
  NewClient fresh;
  fresh.identity.pid = kPid;
  Client& client = core.AddClient(std::move(fresh));
  REQUIRE(core.AttachDevice(client, Claimed(kAmd)));
  CHECK(core.Clients().Devices().at(kAmd)->vendor == "amd");
  NewDevice invented = Claimed("0000:c2:00.0");
  invented.slot = 1;
  CHECK(!core.AttachDevice(client, invented));
  CHECK(core.Clients().Devices().size() == 1);
}

TEST_CASE("devices of a software GPU are as clients describe them, if the configuration allows it") {
  const Machine machine;
  boost::asio::io_context io;
  Config config;
  config.software_gpu = true;
  Core core(io, {}, config, machine.Gpus());
  Client& client = core.AddClient({});
  REQUIRE(core.AttachDevice(client, Claimed("0000:c2:00.0")));
  CHECK(core.Clients().Devices().at("0000:c2:00.0")->vendor == "nvidia");
}

TEST_CASE("self-test devices are for the self-test only, and bounded") {
  const Machine machine;
  boost::asio::io_context io;
  Core core(io, {}, {}, machine.Gpus());
  Client& client = core.AddClient({});
  Client& other = core.AddClient({});
  char address[] = "ffff:00:00.0";
  for (std::uint32_t slot = 0; slot < 64; ++slot) {
    std::snprintf(address, sizeof address, "ffff:%02x:00.0", slot);
    NewDevice device = Claimed(address);
    device.slot = slot;
    REQUIRE(core.AttachDevice(client, device));
  }
  CHECK(core.AttachDevice(other, Claimed("ffff:00:00.0")));
  NewDevice one_more = Claimed("ffff:ff:00.0");
  one_more.slot = 1;
  CHECK(core.AttachDevice(other, one_more).error().what == "there are 64 devices of self tests already");
}
