// xschedd: the daemon. Options, start, exit codes.
//
//   0  stopped by SIGTERM or SIGINT; --version, --help, --check-config with a good file
//   1  cannot start: sockets, gRPC, another daemon
//   2  wrong options
//   3  wrong configuration
#include <malloc.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "common/command_syntax.h"
#include "common/one_line.h"
#include "common/runtime_dir.h"
#include "daemon/build_config.h"
#include "daemon/install_paths.h"
#include "daemon/server.h"
#include "daemon/telemetry/log.h"
#include "daemon/threads.h"

namespace xschedd {
namespace {

enum ExitCode { kExitOk = 0, kExitStart = 1, kExitUsage = 2, kExitConfig = 3 };

struct Options {
  std::string runtime_dir;
  std::string config;
  std::string policy;
  std::string log_level = "info";
  bool software_gpu = false;
  bool check_config = false;
  bool version = false;
};

// Enough for the daemon itself and some clients. gRPC ends the process if it gets no descriptor at its start.
constexpr rlim_t kMinDescriptors = 64;

// For the number per client see kDescriptorsEach in connections/connections.cc.
Result<void> RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  if (limit.rlim_max < kMinDescriptors) {
    return Fail("the limit of open files is " + std::to_string(limit.rlim_max),
                "raise LimitNOFILE to " + std::to_string(kMinDescriptors) + " or more");
  }
  if (limit.rlim_cur == limit.rlim_max) return {};
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) SPDLOG_WARN("cannot raise the limit of open files");
  return {};
}

// Out of memory, the daemon ends and is restarted by its supervisor; clients run freely meanwhile. An exception could
// pass through gRPC's frames and leave its work half done: gRPC was seen to swallow some and then answer nobody.
[[noreturn]] void ExitWithoutMemory() {
  constexpr std::string_view kLine = "xschedd: no memory is left; raise the memory limit\n";
  SayLast(kLine);
  std::abort();
}

int Complain(const Error& error, ExitCode code) {
  std::fprintf(stderr, "xschedd: %s\n", error.Line().c_str());
  return code;
}

int Serve(const Options& options) {
  if (const auto log = StartLog(options.log_level); !log) return Complain(log.error(), kExitUsage);
  struct AtEnd {
    ~AtEnd() { EndLog(); }
  } const at_end;
  if (!options.policy.empty() && !policy::NameFrom(options.policy)) {
    return Complain({"there is no policy \"" + options.policy + "\"", "choose " + policy::NamesText()}, kExitUsage);
  }
  const bool is_default = options.config.empty();
  const ConfigSource source{is_default ? kDefaultConfigPath : options.config, is_default, options.policy,
                            options.software_gpu};
  auto config = source.Load();
  if (!config) return Complain(config.error(), kExitConfig);
  if (options.check_config) {
    for (const std::string& file : config->files)
      std::printf("%s: good\n", OneLine(file).c_str());
    if (config->files.empty()) std::printf("%s: absent, so the defaults apply\n", source.path.c_str());
    return kExitOk;
  }
  std::set_new_handler(&ExitWithoutMemory);
  ExitWithoutThreads();
  // Otherwise each of gRPC's many threads would get its own heap and keep what a thousand clients once needed.
  ::mallopt(M_ARENA_MAX, 2);
  PrepareGrpc();
  // A write to a connection that just closed must not kill the daemon.
  std::signal(SIGPIPE, SIG_IGN);
  if (const auto raised = RaiseDescriptorLimit(); !raised) return Complain(raised.error(), kExitStart);
  auto passed = TakePassedDescriptors();
  if (!passed) return Complain(passed.error(), kExitStart);
  auto sockets = ListeningSockets::Open(RuntimeDir(options.runtime_dir), *passed);
  if (!sockets) return Complain(sockets.error(), kExitStart);
  Server server(source, std::move(*config), std::move(*sockets));
  if (const auto started = server.Start(std::move(*passed)); !started) return Complain(started.error(), kExitStart);
  server.Run();
  return kExitOk;
}

int Main(int argc, char** argv) {
  Options options;
  CommandSyntax syntax("xschedd: priorities for the processes that use this machine's GPUs");
  syntax.AddOption("--runtime-dir", options.runtime_dir,
                   "folder of the sockets; default $XSCHEDD_RUNTIME_DIR, /run/xschedd");
  syntax.AddOption("--config", options.config,
                   "configuration; must exist. Default, may be absent: " + std::string(kDefaultConfigPath));
  syntax.AddOption("--policy", options.policy, "policy, overriding the configuration: " + policy::NamesText());
  syntax.AddOption("--log-level", options.log_level, "trace, debug, info, warning, error or off",
                   {.shows_default = true});
  syntax.AddFlag("--software-gpu", options.software_gpu,
                 "accept devices as clients describe them, overriding the configuration: for a software GPU");
  syntax.AddFlag("--check-config", options.check_config, "check the configuration and exit");
  syntax.AddFlag("--version", options.version, "print the version and exit");
  if (const std::optional<int> status = syntax.ReadOrPrint(argc, argv)) return *status == 0 ? kExitOk : kExitUsage;
  if (options.version) {
    std::printf("xschedd %s, shared-memory layout %u\n", kDaemonVersion, abi::Newest().version);
    return kExitOk;
  }
  return Serve(options);
}

}  // namespace
}  // namespace xschedd

int main(int argc, char** argv) {
  try {
    return xschedd::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "xschedd: %s\n", error.what());
    return xschedd::kExitStart;
  }
}
