#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>

#include "common/versions.h"
#include "tools/xschedctl/bundle/parts.h"
#include "tools/xschedctl/file_text.h"
#include "tools/xschedctl/lines.h"

namespace xschedd::ctl {
namespace {

constexpr std::string_view kUnits =
    "xschedd.target xschedd.service xschedd-client.socket xschedd-admin.socket xschedd-metrics.socket";

// What a command printed, and its exit status.
struct CommandOutput {
  std::string text;
  int status = -1;
};

CommandOutput RunCommand(const std::string& command) {
  FILE* const out = ::popen(("LC_ALL=C SYSTEMD_COLORS=0 timeout 20 " + command + " 2>&1").c_str(), "re");
  if (out == nullptr) return {};
  CommandOutput output;
  char piece[4096];
  for (std::size_t size = 0; (size = std::fread(piece, 1, sizeof piece, out)) > 0;)
    output.text.append(piece, size);
  const int status = ::pclose(out);
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

std::string FirstLine(const std::string& text) {
  return OneLine(text.substr(0, text.find('\n')));
}

}  // namespace

void AddSystem(Parts* parts) {
  const CommandOutput log = RunCommand("journalctl -u xschedd -n 2000 --no-pager --quiet");
  const std::string why = log.text.empty() ? "journalctl has none that this user may read" : FirstLine(log.text);
  if (log.status == 0 && !log.text.empty()) {
    parts->Add("log", MapLines(log.text, &Redactor::LogLine));
  } else {
    parts->Miss("log", why + "; run it as root or as a member of group systemd-journal");
  }
  if (::access("/run/systemd/system", F_OK) != 0) {
    parts->Miss("units", "systemd does not run here");
    return;
  }
  const auto line = [](const std::string& text) { return Redactor::LogLine(Redactor::UnitLine(text)); };
  // `systemctl status` exits with 3 if a unit does not run; its output says so.
  parts->Add("units-status",
             MapLines(RunCommand(fmt::format("systemctl status --no-pager --full -n 0 {}", kUnits)).text, line));
  parts->Add("units-show", MapLines(RunCommand(fmt::format("systemctl show --no-pager {}", kUnits)).text, line));
}

void AddVersions(const Facts& facts, Parts* parts) {
  std::string text = fmt::format("xschedctl {} (ABI {}, layout {:016x}, interface {})\n", facts.ctl_version,
                                 facts.abi_version, facts.layout_hash, facts.interface_version);
  text += facts.daemon ? fmt::format("daemon {} (ABI {}, layout {:016x})\n", OneLine(facts.daemon->version),
                                     facts.daemon->abi_version, facts.daemon->layout_hash)
                       : "daemon: did not answer\n";
  text += fmt::format("kernel {}\n", facts.kernel.release);
  if (facts.glibc) text += fmt::format("glibc {}.{}\n", facts.glibc->first, facts.glibc->second);
  const auto add_runtimes = [&](const char* name, const std::vector<RuntimeFacts>& runtimes) {
    for (const RuntimeFacts& runtime : runtimes) {
      // The link's target has the version in its name.
      std::error_code error;
      const std::filesystem::path real = std::filesystem::canonical(runtime.path, error);
      text += fmt::format("{} {} ({})\n", name, error ? runtime.path : real.string(), runtime.found_by);
    }
    if (runtimes.empty()) text += fmt::format("{}: none found\n", name);
  };
  add_runtimes("HIP", facts.hip);
  add_runtimes("CUDA", facts.cuda);
  constexpr std::pair<const char*, const char*> kFiles[] = {
      {"amdgpu", "/sys/module/amdgpu/version"},
      {"ROCm", "/opt/rocm/.info/version"},
      {"NVIDIA's driver", "/proc/driver/nvidia/version"},
  };
  for (const auto& [name, path] : kFiles) {
    const std::string said = FirstLine(FileText(path));
    text += fmt::format("{}: {}\n", name, said.empty() ? "no " + std::string(path) : said);
  }
  const std::string release = FileText("/etc/os-release");
  if (release.empty()) parts->Miss("os-release", "/etc/os-release cannot be read");
  parts->Add("versions", text + "\n" + release);
}

}  // namespace xschedd::ctl
