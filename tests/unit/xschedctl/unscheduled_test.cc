#include "tools/xschedctl/unscheduled.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/render_text.h"

namespace xschedd::ctl {
namespace {

namespace fs = std::filesystem;

// A folder with /proc's files about some processes.
class Root {
 public:
  Root() {
    char name[] = "/tmp/unscheduled-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Root() { fs::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  void Add(int pid, const std::string& open, const std::string& maps, int parent = 1) const {
    const fs::path folder = path_ / "proc" / std::to_string(pid);
    fs::create_directories(folder / "fd");
    fs::create_symlink("/dev/null", folder / "fd" / "0");
    fs::create_symlink(open, folder / "fd" / "5");
    std::ofstream(folder / "comm") << "train\n";
    std::ofstream(folder / "maps") << maps;
    std::ofstream(folder / "status") << "Name:\ttrain\nPPid:\t" << parent << "\n";
  }
  std::string Path() const { return path_.string(); }

 private:
  fs::path path_;
};

constexpr char kOther[] = "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libcuda.so.1\n";
constexpr char kShim[] = "7f00-7f01 r-xp 0 08:01 1 /usr/lib/xschedd/libxschedd-shim.so\n";

TEST_CASE("processes that use a GPU without a session are found, with the reason") {
  const Root root;
  root.Add(10, "/dev/kfd", kOther);
  root.Add(11, "/dev/nvidia-uvm", kShim);
  root.Add(12, "/dev/nvidia-uvm", kShim);      // a client
  root.Add(13, "/dev/nvidia-uvm", kShim, 12);  // its worker
  root.Add(14, "/dev/nvidiactl", kOther);      // a monitor
  root.Add(15, "/dev/dri/renderD128", kOther);
  fs::create_directories(root.Path() + "/proc/sys");
  const UnscheduledProcesses found = FindUnscheduled({12}, true, root.Path());
  CHECK(found.is_complete);
  REQUIRE(found.processes.size() == 3);
  CHECK(found.processes[0].pid == 10);
  CHECK(found.processes[0].uid == ::getuid());
  CHECK(found.processes[0].command == "train");
  CHECK(found.processes[0].reason == "shim not preloaded");
  CHECK(found.processes[1].pid == 11);
  CHECK(found.processes[1].reason == "no session");
  CHECK(found.processes[2].pid == 13);
  CHECK(found.processes[2].reason == "child of pid 12");
}

TEST_CASE("processes that may not be inspected are found through KFD, or make the answer incomplete") {
  const Root root;
  for (const int pid : {20, 21}) {
    root.Add(pid, "/dev/kfd", kOther);
    fs::permissions(root.Path() + "/proc/" + std::to_string(pid) + "/fd", fs::perms::none);
  }
  fs::permissions(root.Path(), static_cast<fs::perms>(0755));
  fs::create_directories(root.Path() + "/sys/class/kfd/kfd/proc/20");
  const auto find = [&](const std::set<std::uint64_t>& clients, bool are_all) {
    // Root may inspect every process.
    const bool is_root = ::geteuid() == 0;
    if (is_root) REQUIRE(::seteuid(65534) == 0);
    UnscheduledProcesses found = FindUnscheduled(clients, are_all, root.Path());
    if (is_root) REQUIRE(::seteuid(0) == 0);
    return found;
  };
  UnscheduledProcesses found = find({}, true);
  REQUIRE(found.processes.size() == 1);
  CHECK(found.processes[0].pid == 20);
  CHECK(!found.is_complete);  // 21 may have a GPU open
  CHECK(find({21}, true).is_complete);
  found = find({21}, false);  // 20 may be a client
  CHECK(found.processes.empty());
  CHECK(!found.is_complete);
}

TEST_CASE("unscheduled processes are rows among the clients") {
  UnscheduledProcesses found;
  found.processes.push_back({10, 1000, "train", "shim not preloaded"});
  const std::string text = RenderClients({}, {}, &found);
  CHECK(text.find("10  1000     -") != std::string::npos);
  CHECK(text.find("unscheduled") != std::string::npos);
  CHECK(text.find("train (shim not preloaded)\n") != std::string::npos);
  CHECK(text.find("root") == std::string::npos);
  found.is_complete = false;
  CHECK(RenderClients({}, {}, &found).find("run it as root") != std::string::npos);
  CHECK(ToJson(found)["processes"][0]["pid"] == 10);
  CHECK(ToJson(found)["complete"] == false);
}

}  // namespace
}  // namespace xschedd::ctl
