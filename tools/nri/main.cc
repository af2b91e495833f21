// xschedd-nri: the plugin for containerd and CRI-O. Options, and the loop that reconnects.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "common/command_syntax.h"
#include "common/runtime_dir.h"
#include "tools/nri/session.h"
#include "tools/nri/unix_socket.h"
#include "tools/xschedctl/preload.h"

namespace xschedd::nri {
namespace {

constexpr std::chrono::seconds kReconnect{1};
constexpr int kExitUsage = 2;
constexpr int kExitSettings = 3;

struct Options {
  std::string socket = "/var/run/nri/nri.sock";
  std::string config = kDefaultSettingsPath;
  std::string runtime_dir;
  std::string shim;
  std::string kubelet_dir = kDefaultKubeletDir;
  std::string index = "10";
  bool checks_config = false;
};

void Print(const std::string& line) {
  std::fprintf(stderr, "xschedd-nri: %s\n", line.c_str());
}

// If there is no shim yet, where it will be when it is installed.
std::string ShimOf(const Options& options) {
  if (!options.shim.empty()) return options.shim;
  const auto found = ctl::FindShim("", ctl::ShimCandidates(ctl::OwnPath(), XSCHEDD_LIBRARY_DIR));
  return found ? *found : std::string(XSCHEDD_LIBRARY_DIR) + "/xschedd/" + ctl::kShimName;
}

// Prints why it cannot reach the engine once, not each second.
[[noreturn]] void Run(const Options& options) {
  NodePaths paths{RuntimeDir(options.runtime_dir), options.config, ShimOf(options), options.kubelet_dir};
  DaemonClaims claims(paths.runtime_dir);
  Plugin plugin(std::move(paths), claims, Print);
  std::string said;
  for (;;) {
    Error fault;
    if (auto fd = ConnectTo(options.socket, UnixSocket::kBlocking); fd) {
      Link link(std::move(*fd));
      fault = Serve(link, options.index, plugin, [&] {
        Print("serves the container engine at " + options.socket);
        said.clear();
      });
    } else {
      fault = {fd.error().what, "it waits for a container engine with NRI"};
    }
    if (fault.Line() != said) Print(fault.Line());
    said = fault.Line();
    std::this_thread::sleep_for(kReconnect);
  }
}

bool IsIndex(const std::string& text) {
  return text.size() == 2 && text.find_first_not_of("0123456789") == std::string::npos;
}

int Main(int argc, char** argv) {
  Options options;
  CommandSyntax syntax(
      "Gives the containers of annotated pods, and of pods with a GPU, their claims and the way to xschedd");
  syntax.AddOption("--socket", options.socket, "the container engine's NRI socket", {.shows_default = true});
  syntax.AddOption("--config,-c", options.config, "what pods of each namespace may have", {.shows_default = true});
  syntax.AddOption("--runtime-dir", options.runtime_dir,
                   "the daemon's folder, as containers' mounts name it; default: "
                   "$XSCHEDD_RUNTIME_DIR, else /run/xschedd");
  syntax.AddOption("--shim", options.shim,
                   "the shim on the node, if not the installed one; the configuration takes precedence");
  syntax.AddOption("--kubelet-dir", options.kubelet_dir,
                   "the kubelet's folder, where the annotations of running pods are read", {.shows_default = true});
  syntax.AddOption("--index", options.index, "two digits: the plugin's place among the engine's plugins",
                   {.shows_default = true});
  syntax.AddFlag("--check-config", options.checks_config, "check the configuration, and exit");
  syntax.SetVersion(std::string("xschedd-nri ") + XSCHEDD_VERSION);
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;
  if (!IsIndex(options.index)) {
    Print("\"" + options.index + "\" is not an index; give two digits, such as 10");
    return kExitUsage;
  }
  const auto settings = LoadSettings(options.config);
  if (options.checks_config) {
    if (!settings) return Print(settings.error().Line()), kExitSettings;
    if (::access(options.config.c_str(), F_OK) != 0) return Print("there is no " + options.config), kExitSettings;
    std::printf("%s: good\n", options.config.c_str());
    return 0;
  }
  // gRPC's own messages add nothing to what is printed here.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  Run(options);
}

}  // namespace
}  // namespace xschedd::nri

int main(int argc, char** argv) {
  return xschedd::nri::Main(argc, argv);
}
