// The doctor's checks, each on a fake system: message, level and remedy.
#include <cerrno>
#include <functional>

#include "tests/catch.h"
#include "tools/xschedctl/doctor/checks.h"
#include "tools/xschedctl/doctor/elf_file.h"
#include "tools/xschedctl/doctor/report.h"

namespace xschedd::ctl {
namespace {

// A system without errors.
Facts Good() {
  Facts facts;
  facts.ctl_version = "1.2.3";
  facts.abi_version = 1;
  facts.layout_hash = 77;
  facts.interface_version = 3;
  facts.client_socket = {"/run/xschedd/client.sock", true, true, 0666, 0};
  facts.admin_socket = {"/run/xschedd/admin.sock", true, true, 0660, 0};
  facts.daemon = DaemonFacts{"1.2.3", 1, 77, false};
  facts.is_root = true;
  facts.has_group = true;
  facts.service = {true, true, "active", "running", "enabled", "5s", 0};
  facts.shim = {"/lib/xschedd/libxschedd-shim.so", true, "", "1.2.3", 0};
  facts.shim_needs = GlibcVersion{2, 17};
  facts.library = {"/lib/xschedd/libxschedd-client.so", true, "", "1.2.3", 3};
  facts.library_needs = GlibcVersion{2, 34};
  facts.glibc = GlibcVersion{2, 36};
  facts.hip = {{"/opt/rocm/lib/libamdhip64.so.6", "/opt/rocm", true}};
  facts.amd_devices = {{"/dev/kfd", 0}, {"/dev/dri/renderD128", 0}};
  facts.kernel = {"6.1.0", true, true, true};
  return facts;
}

Facts WithProcess() {
  Facts facts = Good();
  ProcessFacts process;
  process.pid = 42;
  process.exists = process.is_readable = true;
  process.exe = "/usr/bin/train";
  process.maps_shim = process.maps_library = true;
  process.maps_runtime = "/opt/rocm/lib/libamdhip64.so.6";
  process.environment = {{"LD_PRELOAD", "/lib/xschedd/libxschedd-shim.so"}};
  process.has_session = true;
  process.root = {"/proc/42/root", true, true, true, GlibcVersion{2, 36}};
  facts.process = process;
  return facts;
}

struct Case {
  const char* check;
  Level level;
  const char* says;
  std::function<void(Facts&)> change;
};

// The worst finding of `check` after the change must have this level and text; errors must have a remedy.
void Examine(const std::vector<Case>& cases, const Facts& good) {
  for (const Case& one : cases) {
    Facts facts = good;
    one.change(facts);
    bool is_said = false;
    Level worst = Level::kOk;
    std::string all;
    for (const Report::Entry& entry : ctl::Examine(facts).entries) {
      if (entry.check != one.check) continue;
      const std::string line = entry.finding.what + "; " + entry.finding.fix;
      all += line + "\n";
      worst = std::max(worst, entry.finding.level);
      is_said |= entry.finding.level == one.level && line.find(one.says) != std::string::npos;
      CHECK((entry.finding.level == Level::kOk) == entry.finding.fix.empty());
    }
    INFO(one.check << ": " << one.says << "\nit says: " << all);
    CHECK(is_said);
    CHECK(worst == one.level);
  }
}

}  // namespace

TEST_CASE("the doctor finds nothing wrong with a good system", "[doctor]") {
  for (const Facts& facts : {Good(), WithProcess()}) {
    const Report report = Examine(facts);
    INFO(Render(report, {}));
    CHECK_FALSE(report.HasError());
    for (const Report::Entry& entry : report.entries)
      CHECK(entry.finding.level == Level::kOk);
  }
}

TEST_CASE("the doctor: a container has only the client socket", "[doctor]") {
  Facts facts = Good();
  facts.admin_socket = {"/run/xschedd/admin.sock", false, false, 0, ENOENT};
  CHECK(Examine(facts).HasError());
  facts.client_socket.is_outside = true;
  facts.has_group = false;
  const Report report = Examine(facts);
  INFO(Render(report, {}));
  for (const Report::Entry& entry : report.entries)
    CHECK(entry.finding.level == Level::kOk);
}

TEST_CASE("the doctor: daemon and sockets", "[doctor]") {
  Examine(
      {
          {"client socket", Level::kError, "does not exist; start it",
           [](Facts& f) { f.client_socket.exists = false; }},
          {"client socket", Level::kError, "is not a socket", [](Facts& f) { f.client_socket.is_socket = false; }},
          {"client socket", Level::kError, "nothing listens",
           [](Facts& f) { f.client_socket.connect_error = ECONNREFUSED; }},
          {"client socket", Level::kError, "it is stopped, or hangs; restart it",
           [](Facts& f) { f.client_socket.connect_error = EAGAIN; }},
          {"client socket", Level::kError, "your programs run unscheduled",
           [](Facts& f) { f.client_socket.connect_error = EACCES; }},
          {"client socket", Level::kError, "File name too long",
           [](Facts& f) { f.client_socket.connect_error = ENAMETOOLONG; }},
          {"admin socket", Level::kWarning, "there is no group xschedd",
           [](Facts& f) {
             f.admin_socket.connect_error = EACCES;
             f.has_group = false;
           }},
          {"admin socket", Level::kWarning, "usermod -aG xschedd",
           [](Facts& f) {
             f.admin_socket.connect_error = EACCES;
             f.has_group = true;
           }},
          {"admin socket", Level::kWarning, "log in again",
           [](Facts& f) {
             f.admin_socket.connect_error = EACCES;
             f.has_group = f.is_member = true;
           }},
          {"admin socket", Level::kError, "every user may write", [](Facts& f) { f.admin_socket.mode = 0666; }},
          {"admin socket", Level::kError, "did not answer in time",
           [](Facts& f) {
             f.daemon.reset();
             f.daemon_error = "did not answer in time";
           }},
          {"enforcement", Level::kWarning, "only observes", [](Facts& f) { f.daemon->observes_only = true; }},
          {"versions", Level::kError, "systemctl restart xschedd", [](Facts& f) { f.daemon->layout_hash = 78; }},
          {"versions", Level::kWarning, "the daemon is 1.2.2", [](Facts& f) { f.daemon->version = "1.2.2"; }},
          {"versions", Level::kWarning, "the shim /lib/xschedd/libxschedd-shim.so is 1.2.2",
           [](Facts& f) { f.shim.version = "1.2.2"; }},
      },
      Good());
}

TEST_CASE("the doctor: shim and private library", "[doctor]") {
  Examine(
      {
          {"shim", Level::kError, "install xschedd's client",
           [](Facts& f) {
             f.shim = {"", false, "libxschedd-shim.so is not there", "", 0};
           }},
          {"shim", Level::kError, "wrong ELF class",
           [](Facts& f) {
             f.shim = {"/x.so", false, "wrong ELF class: ELFCLASS32", "", 0};
           }},
          {"private library", Level::kError, "cannot open shared object file",
           [](Facts& f) {
             f.library = {"/x/libxschedd-client.so", false, "cannot open shared object file", "", 0};
           }},
          {"private library", Level::kError, "this C library is glibc 2.31, and it needs 2.34",
           [](Facts& f) {
             f.library = {"/x.so", false, "version `GLIBC_2.34' not found", "", 0};
             f.glibc = GlibcVersion{2, 31};
           }},
          {"private library", Level::kError, "has interface 2, this release has 3",
           [](Facts& f) { f.library.interface = 2; }},
          {"preload", Level::kError, "names /gone.so, which does not exist",
           [](Facts& f) { f.preloaded_missing = {"/gone.so"}; }},
          {"root", Level::kError, "bind-mount /lib/xschedd into it",
           [](Facts& f) {
             f.root = RootFacts{"/c", false, true, true, GlibcVersion{2, 36}};
           }},
          {"root", Level::kError, "its programs find no daemon; bind-mount /run/xschedd/client as /run/xschedd",
           [](Facts& f) {
             f.root = RootFacts{"/c", true, true, false, GlibcVersion{2, 36}};
           }},
          {"root", Level::kError, "not musl",
           [](Facts& f) {
             f.root = RootFacts{"/c", true, true, true, {}};
           }},
          {"root", Level::kError, "the private library needs 2.34",
           [](Facts& f) {
             f.root = RootFacts{"/c", true, true, true, GlibcVersion{2, 31}};
           }},
          {"root", Level::kError, "the shim needs 2.17",
           [](Facts& f) {
             f.root = RootFacts{"/c", true, true, true, GlibcVersion{2, 12}};
           }},
          {"root", Level::kOk, "glibc 2.36",
           [](Facts& f) {
             f.root = RootFacts{"/c", true, true, true, GlibcVersion{2, 36}};
           }},
      },
      Good());
}

TEST_CASE("the doctor: runtimes, devices, kernel", "[doctor]") {
  Examine(
      {
          {"runtime", Level::kWarning, "no libamdhip64 and no libcuda", [](Facts& f) { f.hip.clear(); }},
          {"runtime", Level::kOk, "by its dispatch table", [](Facts&) {}},
          {"runtime", Level::kOk, "by its symbols", [](Facts& f) { f.hip[0].registers = false; }},
          {"runtime", Level::kOk, "libcuda.so.1",
           [](Facts& f) {
             f.cuda = {{"/lib/libcuda.so.1", "x", false}};
           }},
          {"device", Level::kWarning, "no GPU", [](Facts& f) { f.amd_devices.clear(); }},
          {"device", Level::kError, "groups render and video", [](Facts& f) { f.amd_devices[0].open_error = EACCES; }},
          {"device", Level::kError, "dmesg", [](Facts& f) { f.amd_devices[1].open_error = ENODEV; }},
          {"device", Level::kError, "--gpus all",
           [](Facts& f) {
             f.nvidia_devices = {{"/dev/nvidiactl", EPERM}};
           }},
          {"device", Level::kWarning, "software GPU", [](Facts& f) { f.software_gpu = "/x/libhsa-runtime64.so.1"; }},
          {"device", Level::kWarning, "clients use xschedd software GPU",
           [](Facts& f) {
             f.amd_devices.clear();
             f.used_devices = {"xschedd software GPU, 0000:c1:00.0"};
           }},
          {"kernel", Level::kOk, "without pidfd_open (5.3)", [](Facts& f) { f.kernel.has_pidfd = false; }},
          {"kernel", Level::kOk, "without SO_PEERPIDFD (6.5)", [](Facts& f) { f.kernel.has_peer_pidfd = false; }},
          {"kernel", Level::kError, "sealed memfds", [](Facts& f) { f.kernel.has_memfd_seals = false; }},
          {"kernel", Level::kOk, "without F_SEAL_FUTURE_WRITE (5.1)",
           [](Facts& f) { f.kernel.has_future_write_seal = false; }},
      },
      Good());
}

TEST_CASE("the doctor: variables", "[doctor]") {
  const auto set = [](const char* name, const char* value) {
    return [name, value](Facts& facts) { facts.environment[name] = value; };
  };
  Examine(
      {
          {"environment", Level::kWarning, "unset it", set("XSCHEDD_DISABLE", "1")},
          {"environment", Level::kOk, "no variable", set("XSCHEDD_DISABLE", "0")},
          {"environment", Level::kError, "-100 to 100", set("XSCHEDD_PRIORITY", "high")},
          {"environment", Level::kOk, "no variable", set("XSCHEDD_PRIORITY", "+5")},
          {"environment", Level::kError, "1 to 10000", set("XSCHEDD_WEIGHT", "0")},
          {"environment", Level::kError, "3600000000", set("XSCHEDD_DEADLINE_US", "33ms")},
          {"environment", Level::kError, "0 or 1", set("XSCHEDD_STREAMS", "yes")},
          {"environment", Level::kError, "did you mean hipMemcpyAsync?", set("XSCHEDD_PASSTHROUGH", "hipMemcpyAsnc")},
          {"environment", Level::kWarning, "not even why", set("XSCHEDD_LOG", "quiet")},
          {"environment", Level::kError, "quiet, warn or info", set("XSCHEDD_LOG", "debug")},
          {"environment", Level::kWarning, "it is for tests", set("XSCHEDD_CLIENT_LIB", "/x.so")},
          {"environment", Level::kWarning, "between HIP and the device", set("HSA_TOOLS_LIB", "librocprofiler64.so")},
          {"environment", Level::kWarning, "inside the gate", set("ROCP_TOOL_LIBRARIES", "/x.so")},
          {"environment", Level::kWarning, "did you mean XSCHEDD_PRIORITY?", set("XSCHEDD_PRIORITI", "5")},
          {"environment", Level::kWarning, "known are", set("XSCHEDD_SOMETHING_ELSE", "5")},
      },
      Good());
}

TEST_CASE("the doctor: a process and its session", "[doctor]") {
  Examine(
      {
          {"process", Level::kError, "there is no pid 42", [](Facts& f) { f.process->exists = false; }},
          {"process", Level::kWarning, "as its user or as root", [](Facts& f) { f.process->is_readable = false; }},
          {"process", Level::kError, "statically linked",
           [](Facts& f) {
             f.process->maps_shim = false;
             f.process->is_static = true;
           }},
          {"process", Level::kError, "set-uid",
           [](Facts& f) {
             f.process->maps_shim = false;
             f.process->is_privileged = true;
           }},
          {"process", Level::kError, "xschedctl run",
           [](Facts& f) {
             f.process->maps_shim = false;
             f.process->environment.clear();
           }},
          {"process", Level::kError, "does not exist in its container",
           [](Facts& f) {
             f.process->maps_shim = false;
             f.process->root.has_shim = false;
           }},
          {"process", Level::kError, "its glibc is 2.12",
           [](Facts& f) {
             f.process->maps_shim = false;
             f.process->root.glibc = GlibcVersion{2, 12};
           }},
          {"process", Level::kError, "standard error", [](Facts& f) { f.process->maps_shim = false; }},
          {"process", Level::kError, "XSCHEDD_DISABLE=1",
           [](Facts& f) { f.process->environment["XSCHEDD_DISABLE"] = "1"; }},
          {"process", Level::kOk, "has not loaded a GPU runtime",
           [](Facts& f) {
             f.process->maps_library = false;
             f.process->maps_runtime.clear();
           }},
          {"device", Level::kWarning, "pid 42 uses the software GPU, /x/libhsa-runtime64.so.1",
           [](Facts& f) {
             f.amd_devices.clear();
             f.process->maps_hsa = "/x/libhsa-runtime64.so.1";
             f.process->has_software_gpu = true;
           }},
          {"process", Level::kWarning, "submitted no GPU work yet", [](Facts& f) { f.process->maps_library = false; }},
          {"process", Level::kError, "the private library does not exist",
           [](Facts& f) {
             f.process->maps_library = false;
             f.process->root.has_library = false;
           }},
          {"process", Level::kError, "the private library needs 2.34",
           [](Facts& f) {
             f.process->maps_library = false;
             f.process->root.glibc = GlibcVersion{2, 31};
           }},
          {"session", Level::kError, "for a refusal", [](Facts& f) { f.process->has_session = false; }},
          {"session", Level::kError, "does not exist in its container; bind-mount /run/xschedd/client as /run/xschedd",
           [](Facts& f) {
             f.process->has_session = false;
             f.process->root.has_client_socket = false;
           }},
      },
      WithProcess());
}

TEST_CASE("the doctor: group and service manager", "[doctor]") {
  Examine(
      {
          {"group", Level::kWarning, "groupadd --system xschedd", [](Facts& f) { f.has_group = false; }},
          {"group", Level::kOk, "you are root", [](Facts&) {}},
          {"group", Level::kOk, "you are not in it", [](Facts& f) { f.is_root = false; }},
          {"group", Level::kOk, "you are in group", [](Facts& f) { f.is_root = !(f.is_in_group = true); }},
          {"service", Level::kOk, "active (running), watchdog 5s", [](Facts&) {}},
          {"service", Level::kOk, "systemd does not run here", [](Facts& f) { f.service = {}; }},
          {"service", Level::kWarning, "has no xschedd.service", [](Facts& f) { f.service.is_known = false; }},
          {"service", Level::kError, "is failed (failed)",
           [](Facts& f) { f.service.active = f.service.sub = "failed"; }},
          {"service", Level::kWarning, "systemctl enable --now", [](Facts& f) { f.service.active = "inactive"; }},
          {"service", Level::kWarning, "restarted xschedd 3 times", [](Facts& f) { f.service.restarts = 3; }},
          {"service", Level::kWarning, "no watchdog", [](Facts& f) { f.service.watchdog = "infinity"; }},
          {"service", Level::kWarning, "not started at boot", [](Facts& f) { f.service.enabled = "disabled"; }},
      },
      Good());
}

TEST_CASE("the doctor: other schedulers of GPU calls", "[doctor]") {
  Examine(
      {
          {"conflicts", Level::kWarning, "LD_PRELOAD has libnvshare.so",
           [](Facts& f) { f.environment["LD_PRELOAD"] = "/x/libnvshare.so"; }},
          {"conflicts", Level::kWarning, "/etc/ld.so.preload has libvgpu.so",
           [](Facts& f) { f.preloaded_for_all = "/x/libvgpu.so\n"; }},
          {"conflicts", Level::kOk, "no other scheduler",
           [](Facts& f) { f.environment["LD_PRELOAD"] = "/lib/xschedd/libxschedd-shim.so"; }},
      },
      Good());
}

TEST_CASE("the doctor's report, for people and for programs", "[doctor]") {
  Facts facts = Good();
  CHECK(ToJson(Examine(facts))["ok"] == true);
  facts.shim.path = "/tmp/\x1b[31m.so";
  facts.client_socket.exists = false;
  const Report report = Examine(facts);
  CHECK(report.HasError());
  const std::string text = Render(report, {});
  CHECK(Render(report, {.colour = true}).find("\x1b[31merror") != std::string::npos);
  CHECK(text.find("error    client socket    no daemon: /run/xschedd/client.sock does not exist; start it") !=
        std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
  const Json json = ToJson(report);
  CHECK(json["ok"] == false);
  CHECK(json["findings"][0]["level"] == "error");
  CHECK(json["findings"][0]["check"] == "client socket");
  CHECK(json["findings"][0]["fix"].get<std::string>().find("start it: systemctl") == 0);
}

TEST_CASE("the doctor's lines fit the terminal, and nothing of them is lost", "[doctor]") {
  Facts facts = Good();
  facts.shim.path = "/a/" + std::string(200, 'x') + "/libxschedd-shim.so";  // no blank to break at
  facts.client_socket.exists = false;
  const Report report = Examine(facts);
  const auto words = [](const std::string& text) {
    std::string all;
    for (const char c : text) {
      if (c != ' ' && c != '\n') all += c;
    }
    return all;
  };
  const std::string wide = Render(report, {});
  for (const std::size_t width : {80, 100, 150}) {
    const std::string text = Render(report, {.width = width});
    CHECK(words(text) == words(wide));
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = text.find('\n', at);
      if (text.find("xxx", at) > end) CHECK(end - at <= width);
      at = end + 1;
    }
  }
  CHECK(Render(report, {.width = 30}) == wide);
}

TEST_CASE("an ELF file says what it imports and which glibc it needs", "[doctor]") {
  const auto self = ReadElf("/proc/self/exe");
  REQUIRE(self);
  CHECK(self->has_interpreter);
  REQUIRE(self->needs);
  CHECK(*self->needs >= GlibcVersion{2, 2});
  CHECK_FALSE(self->imports.empty());
  CHECK_FALSE(ReadElf("/nonexistent"));
  CHECK_FALSE(ReadElf("/proc/self/status"));
}

}  // namespace xschedd::ctl
