// `xschedctl run`: starts a command with the shim preloaded. It needs no daemon: the shim fails open, and so does this.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "common/memory_limit.h"
#include "common/passthrough.h"
#include "common/priority.h"
#include "common/runtime_dir.h"
#include "daemon/config/duration.h"
#include "daemon/policy/types.h"
#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/installed_shim.h"
#include "tools/xschedctl/preload.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

constexpr std::uint32_t kLongestDeadlineUs = 3'600'000'000;  // the limit of the protocol's Hint

struct RunOptions {
  std::string priority;
  std::string weight;
  std::string latency;
  std::string deadline;
  std::string memory;
  std::string group;
  std::vector<std::string> passthrough;
  std::string shim;
  bool dry_run = false;
};

// What --dry-run prints instead of starting the command.
std::string Would(const std::vector<std::string>& command, const Json& environment, const std::string& no_daemon,
                  bool json) {
  if (json) {
    return Document(
        "run", {{"dry_run", true}, {"command", command}, {"environment", environment}, {"daemon", no_daemon.empty()}});
  }
  std::string text = "would run:";
  for (const std::string& word : command)
    text += " " + Harmless(word);
  text += "\nwith:\n";
  for (const auto& [name, value] : environment.items())
    text += "  " + name + "=" + Harmless(value.get<std::string>()) + "\n";
  if (!no_daemon.empty()) text += "unscheduled until there is a daemon: " + Harmless(no_daemon) + "\n";
  return text + "(dry run: nothing was started)\n";
}

void SetOrKeep(const char* variable, const std::string& value) {
  if (!value.empty()) setenv(variable, value.c_str(), 1);
}

// A warning for each of `priority` and `weight` (empty: not requested) that exceeds this user's ceiling, with the
// reason.
std::string CeilingWarning(const std::string& runtime_dir, const std::string& priority, const std::string& weight) {
  auto client = AdminClient::ConnectAsUser(runtime_dir);
  if (!client) return {};
  // An older daemon does not have this call.
  const Outcome<v1::GetCeilingResponse> ceiling = client->Call(v1::GetCeilingRequest());
  if (!ceiling) return {};
  std::string text;
  const auto warn = [&](const char* what, const std::string& wanted, auto most) {
    if (wanted.empty() || std::stol(wanted) <= static_cast<long>(most)) return;
    text += fmt::format("xschedctl: warning: {} {} counts as {}: limited by {}\n", what, wanted, most,
                        Harmless(ceiling->why()));
  };
  warn("priority", priority, ceiling->priority());
  warn("weight", weight, ceiling->weight());
  return text;
}

// In a child process: the command would inherit whatever gRPC changes in this one.
void WarnOfCeiling(const std::string& runtime_dir, const std::string& priority, const std::string& weight) {
  const bool may_raise = (!priority.empty() && std::stol(priority) > kPriorityDefault) ||
                         (!weight.empty() && std::stol(weight) > static_cast<long>(policy::kWeightDefault));
  if (!may_raise) return;
  const pid_t child = fork();
  if (child == 0) {
    fmt::print(stderr, "{}", CeilingWarning(runtime_dir, priority, weight));
    _exit(0);
  }
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Outcome<ExitCode> Run(const RunOptions& options, const GlobalOptions& global, std::vector<std::string> command) {
  if (command.empty()) {
    return UsageFailure(
        {"run: no command was given", "write it after --, as in: xschedctl run --priority 10 -- ./train"});
  }
  if (global.json && !options.dry_run) {
    return UsageFailure({"run takes no --json: the output is its command's", "leave out --json, or give --dry-run"});
  }
  std::string priority;
  if (!options.priority.empty()) {
    const Result<int> parsed = ParsePriority(options.priority);
    if (!parsed) return UsageFailure(parsed.error());
    priority = fmt::format("{}", *parsed);
  }
  std::string weight;
  if (!options.weight.empty()) {
    const Result<std::uint32_t> parsed = ParseWeight(options.weight);
    if (!parsed) return UsageFailure(parsed.error());
    weight = fmt::format("{}", *parsed);
  }
  if (!options.latency.empty()) {
    const Result<std::string> parsed = ParseLatency(options.latency);
    if (!parsed) return UsageFailure(parsed.error());
  }
  std::string deadline_us;
  if (!options.deadline.empty()) {
    const Result<std::uint32_t> parsed = ParseMicroseconds(options.deadline);
    if (!parsed) return UsageFailure(parsed.error());
    if (*parsed == 0 || *parsed > kLongestDeadlineUs) {
      return UsageFailure({"run: the deadline " + options.deadline + " is out of range", "give 1us to 3600s"});
    }
    deadline_us = fmt::format("{}", *parsed);
  }

  std::string memory;
  if (!options.memory.empty()) {
    const Result<std::uint64_t> limit = ParseMemoryLimit(options.memory);
    if (!limit) return UsageFailure(limit.error());
    memory = fmt::format("{}", *limit);
  }

  // The shim would report it, too, but only when the program first uses the GPU.
  std::string passthrough;
  for (const std::string& list : options.passthrough) {
    for (const std::string_view entry : SplitPassthrough(list)) {
      if (const auto parsed = ParsePassthrough(entry); !parsed) return UsageFailure(parsed.error());
      passthrough += (passthrough.empty() ? "" : ",") + std::string(entry);
    }
  }

  const Result<std::string> shim = InstalledShim(options.shim);
  if (!shim) return tl::unexpected<Failure>({ExitCode::kNoShim, shim.error()});
  const char* const existing = std::getenv("LD_PRELOAD");
  const Result<std::string> preload = ComposePreload(*shim, existing != nullptr ? existing : "");
  if (!preload) return tl::unexpected<Failure>({ExitCode::kNoShim, preload.error()});

  // Absolute, because the command may change its working directory before it first uses the GPU.
  const std::string runtime_dir =
      global.runtime_dir.empty() ? std::string() : std::filesystem::absolute(global.runtime_dir).string();
  std::string no_daemon;
  if (const auto daemon = ConnectSocket(ClientSocketPath(RuntimeDir(runtime_dir))); !daemon) {
    no_daemon = daemon.error().error.what;
  }
  if (no_daemon.empty()) WarnOfCeiling(runtime_dir, priority, weight);
  if (options.dry_run) {
    Json environment = Json::object();
    for (const auto& [name, value] :
         std::initializer_list<std::pair<const char*, const std::string&>>{{"LD_PRELOAD", *preload},
                                                                           {"XSCHEDD_PRIORITY", priority},
                                                                           {"XSCHEDD_WEIGHT", weight},
                                                                           {"XSCHEDD_LATENCY", options.latency},
                                                                           {"XSCHEDD_DEADLINE_US", deadline_us},
                                                                           {"XSCHEDD_MEMORY", memory},
                                                                           {"XSCHEDD_GROUP", options.group},
                                                                           {"XSCHEDD_PASSTHROUGH", passthrough},
                                                                           {kRuntimeDirVariable, runtime_dir}}) {
      if (!value.empty()) environment[name] = value;
    }
    Print(Would(command, environment, no_daemon, global.json));
    return ExitCode::kOk;
  }
  if (!no_daemon.empty()) {
    fmt::print(stderr, "xschedctl: warning: {}; the command runs unscheduled until there is one\n", no_daemon);
  }

  SetOrKeep("LD_PRELOAD", *preload);
  SetOrKeep("XSCHEDD_PRIORITY", priority);
  SetOrKeep("XSCHEDD_WEIGHT", weight);
  SetOrKeep("XSCHEDD_LATENCY", options.latency);
  SetOrKeep("XSCHEDD_DEADLINE_US", deadline_us);
  SetOrKeep("XSCHEDD_MEMORY", memory);
  SetOrKeep("XSCHEDD_GROUP", options.group);
  SetOrKeep("XSCHEDD_PASSTHROUGH", passthrough);
  SetOrKeep(kRuntimeDirVariable, runtime_dir);

  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& argument : command)
    arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error_number = errno;
  const ExitCode code = error_number == ENOENT ? ExitCode::kNoCommand : ExitCode::kCannotExec;
  return tl::unexpected<Failure>({code,
                                  {"cannot run " + command[0] + ": " + std::strerror(error_number),
                                   error_number == ENOENT ? "check its name, and PATH"
                                                          : "check that it is a program that this user may execute"}});
}

}  // namespace

Command AddRun(CommandSyntax& program, const GlobalOptions& global, const std::vector<std::string>& rest) {
  CommandSyntax& command = program.AddCommand("run", "Run a command under xschedd: xschedctl run [options] -- CMD...");
  auto options = std::make_shared<RunOptions>();
  command.AddOption("--priority", options->priority, "priority hint, -100 to 100; larger is more important");
  command.AddOption("--weight", options->weight, "share among equals, 1 to 10000; 100 if not given");
  command.AddOption("--latency", options->latency,
                    "\"strict\": others are held whenever it is busy; \"auto\": only where that helps it");
  command.AddOption(
      "--deadline", options->deadline,
      "deadline of a burst of work, counted from its first launch, such as 33ms; for policies that use deadlines");
  command.AddOption(
      "--memory", options->memory,
      "the most device memory that it may have on each device, such as 24G; above it, allocations fail as "
      "on a smaller GPU",
      {.placeholder = "SIZE"});
  command.AddOption("--group", options->group,
                    "name of the group that it is scheduled with as one, such as the ranks of a job");
  command.AddOption(
      "--passthrough", options->passthrough,
      "calls that are never held, separated by commas: a library (librccl.so), an entry point (hipMemcpyAsync), "
      "kernel:GLOB; may be repeated");
  command.AddOption("--shim", options->shim,
                    "the shim to preload instead of the installed one (also $" + std::string(kShimVariable) + ")");
  command.AddFlag("--dry-run", options->dry_run, "show what would be set and started; start nothing");
  return {&command, [=, &global, &rest] { return Run(*options, global, rest); }};
}

}  // namespace xschedd::ctl
