// Which processes count as unscheduled, given a tree of files like the kernel's.
#include "daemon/metrics/unscheduled.h"

#include <filesystem>
#include <fstream>

#include "common/clock.h"
#include "tests/catch.h"
#include "tests/unit/daemon/folder.h"
#include "tests/unit/metrics/some_daemon.h"

namespace xschedd {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirst = "0000:3b:00.0";
constexpr const char* kSecond = "0000:c1:00.0";

class Machine {
 public:
  Machine() {
    File("proc/driver/nvidia/gpus/" + std::string(kFirst) + "/information", "Device Minor: \t 0\n");
    File("proc/driver/nvidia/gpus/" + std::string(kSecond) + "/information", "Device Minor: \t 1\n");
  }
  void Add(int pid, int parent, std::initializer_list<const char*> open) const {
    const std::string folder = "proc/" + std::to_string(pid);
    File(folder + "/status", "Name:\tx\nPPid:\t" + std::to_string(parent) + "\n");
    fs::create_directories(Root() + "/" + folder + "/fd");
    int number = 3;
    for (const char* file : open)
      fs::create_symlink(file, Root() + "/" + folder + "/fd/" + std::to_string(number++));
  }
  const std::string& Root() const { return folder_.Path(); }

 private:
  void File(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(Root() + "/" + path).parent_path());
    std::ofstream(Root() + "/" + path) << text;
  }
  const test::Folder folder_;
};

using Counts = std::map<std::string, std::uint64_t>;

}  // namespace

TEST_CASE("unscheduled processes use a device and are neither clients nor children of clients") {
  const Machine machine;
  machine.Add(10, 1, {"/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia1"});
  machine.Add(11, 1, {"/dev/nvidia-uvm", "/dev/nvidia1"});
  machine.Add(12, 1, {"/dev/nvidia-uvm", "/dev/nvidia0"});   // a client
  machine.Add(13, 12, {"/dev/nvidia-uvm", "/dev/nvidia0"});  // its worker
  machine.Add(14, 1, {"/dev/nvidiactl", "/dev/nvidia0"});    // a monitor
  machine.Add(15, 1, {"/dev/kfd"});
  UnscheduledUsers users(machine.Root());
  CHECK(!users.Count({}));
  users.ScanSoon(0);
  users.Finish();
  CHECK(users.Count({12}) == Counts{{kFirst, 1}, {kSecond, 2}, {"none", 1}});
  CHECK(users.Count({10, 11, 12, 15}) == Counts{});
}

TEST_CASE("no scan starts before the pause is over") {
  const Machine machine;
  UnscheduledUsers users(machine.Root());
  users.ScanSoon(MonotonicNs());
  users.Finish();
  machine.Add(10, 1, {"/dev/nvidia-uvm", "/dev/nvidia0"});
  users.ScanSoon(MonotonicNs());
  users.Finish();
  CHECK(users.Count({}) == Counts{});
  users.ScanSoon(MonotonicNs() + 2 * UnscheduledUsers::kPauseNs + 1'000'000'000'000);
  users.Finish();
  CHECK(users.Count({}) == Counts{{kFirst, 1}});
}

TEST_CASE("processes too many to see are not counted") {
  const Machine machine;
  for (const int pid : {1, 2, 3})
    machine.Add(pid, 0, {"/dev/kfd"});
  for (const std::size_t most : {2u, 3u}) {
    UnscheduledUsers users(machine.Root(), most);
    users.ScanSoon(0);
    users.Finish();
    CHECK(users.Count({}).has_value() == (most == 3));
  }
}

TEST_CASE("the metrics include them from the second count on") {
  const Machine machine;
  machine.Add(10, 1, {"/dev/nvidia-uvm", "/dev/nvidia0"});
  test::SomeDaemon daemon;
  const auto text_of = [&](MetricsCollector& collector) {
    bool done = false;
    std::string metrics;
    collector.Collect(MetricFormat::kOpenMetrics, [&](const auto& text) {
      metrics = *text;
      done = true;
    });
    daemon.Run(done);
    return metrics;
  };
  const std::string row = "xschedd_unscheduled_processes{device=\"0000:3b:00.0\"} 1\n";
  MetricsCollector collector(daemon.io, daemon.core, daemon.connections, daemon.quotas, machine.Root());
  std::string metrics = text_of(collector);
  CHECK(metrics.find("# TYPE xschedd_unscheduled_processes gauge") != std::string::npos);
  CHECK(metrics.find("xschedd_unscheduled_processes{") == std::string::npos);
  // Counts are some tenths of a second apart.
  for (int i = 0; i < 10'000 && metrics.find(row) == std::string::npos; ++i)
    metrics = text_of(collector);
  CHECK(metrics.find(row) != std::string::npos);
}

}  // namespace xschedd
