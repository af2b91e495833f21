// `xschedctl run`: starts a command with the shim preloaded. It needs no daemon: the shim fails open, and so does this.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "common/passthrough.h"
#include "common/priority.h"
#include "common/runtime_dir.h"
#include "daemon/config/duration.h"
#include "daemon/policy/types.h"
#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/argument_vector.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/given_options.h"
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
  std::string group;
  std::vector<std::string> passthrough;
  std::string shim;
  bool dry_run = false;
};

// What --dry-run prints instead of starting the command.
std::string DryRunText(const std::vector<std::string>& command, const Json& environment, const std::string& no_daemon,
                       bool json) {
  if (json) {
    return Document(
        "run", {{"dry_run", true}, {"command", command}, {"environment", environment}, {"daemon", no_daemon.empty()}});
  }
  std::string text = "would run:";
  for (const std::string& word : command)
    text += " " + OneLine(word);
  text += "\nwith:\n";
  for (const auto& [name, value] : environment.items())
    text += "  " + name + "=" + OneLine(value.get<std::string>()) + "\n";
  if (!no_daemon.empty()) text += "unscheduled until there is a daemon: " + OneLine(no_daemon) + "\n";
  return text + "(dry run: nothing was started)\n";
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
  const auto warn = [&](const char* what, const std::string& requested, auto ceiling_value) {
    if (requested.empty() || std::stol(requested) <= static_cast<long>(ceiling_value)) return;
    text += fmt::format("xschedctl: warning: {} {} counts as {}: limited by {}\n", what, requested, ceiling_value,
                        OneLine(ceiling->why()));
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

// The hints as the shim reads them from its environment; empty: not given.
struct Hints {
  std::string priority = {};
  std::string weight = {};
  std::string latency = {};
  std::string deadline_us = {};
  std::string group = {};
  std::string passthrough = {};
};

Result<Hints> ParseHints(const RunOptions& options) {
  Hints hints{.group = options.group};
  std::uint32_t deadline_us = 0;
  GivenOptions given;
  given.Read(options.priority, ParsePriority, [&](int value) { hints.priority = fmt::format("{}", value); });
  given.Read(options.weight, ParseWeight, [&](std::uint32_t value) { hints.weight = fmt::format("{}", value); });
  given.Read(options.latency, ParseLatency, [&](std::string value) { hints.latency = std::move(value); });
  given.Read(options.deadline, ParseMicroseconds, [&](std::uint32_t value) { deadline_us = value; });
  if (given.FirstError()) return tl::unexpected<Error>(*given.FirstError());
  if (!options.deadline.empty()) {
    if (deadline_us == 0 || deadline_us > kLongestDeadlineUs)
      return Fail("run: the deadline " + options.deadline + " is out of range", "give 1us to 3600s");
    hints.deadline_us = fmt::format("{}", deadline_us);
  }
  // The shim would report it, too, but only when the program first uses the GPU.
  for (const std::string& list : options.passthrough) {
    for (const std::string_view entry : SplitPassthrough(list)) {
      if (const auto parsed = ParsePassthrough(entry); !parsed) return tl::unexpected<Error>(parsed.error());
      hints.passthrough += (hints.passthrough.empty() ? "" : ",") + std::string(entry);
    }
  }
  return hints;
}

// The variables that are set for the command; all others stay as they are.
std::vector<std::pair<const char*, std::string>> VariablesOf(const Hints& hints, const std::string& preload,
                                                             const std::string& runtime_dir) {
  std::vector<std::pair<const char*, std::string>> variables = {{"LD_PRELOAD", preload},
                                                                {"XSCHEDD_PRIORITY", hints.priority},
                                                                {"XSCHEDD_WEIGHT", hints.weight},
                                                                {"XSCHEDD_LATENCY", hints.latency},
                                                                {"XSCHEDD_DEADLINE_US", hints.deadline_us},
                                                                {"XSCHEDD_GROUP", hints.group},
                                                                {"XSCHEDD_PASSTHROUGH", hints.passthrough},
                                                                {kRuntimeDirVariable, runtime_dir}};
  std::erase_if(variables, [](const auto& variable) { return variable.second.empty(); });
  return variables;
}

// Replaces this program by the command. Returns only if that fails.
Failure Execute(std::vector<std::string> command) {
  ::execvp(command[0].c_str(), ArgumentVector(command).data());
  const int error_number = errno;
  const std::string what = "cannot run " + command[0] + ": " + std::strerror(error_number);
  if (error_number == ENOENT) return {ExitCode::kNoCommand, {what, "check its name, and PATH"}};
  return {ExitCode::kCannotExec, {what, "check that it is a program that this user may execute"}};
}

Outcome<ExitCode> Run(const RunOptions& options, const GlobalOptions& global, const std::vector<std::string>& command) {
  if (command.empty()) {
    return UsageFailure(
        {"run: no command was given", "write it after --, as in: xschedctl run --priority 10 -- ./train"});
  }
  if (global.json && !options.dry_run) {
    return UsageFailure({"run takes no --json: the output is its command's", "leave out --json, or give --dry-run"});
  }
  const Result<Hints> hints = ParseHints(options);
  if (!hints) return UsageFailure(hints.error());
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
  if (no_daemon.empty()) WarnOfCeiling(runtime_dir, hints->priority, hints->weight);
  const auto variables = VariablesOf(*hints, *preload, runtime_dir);
  if (options.dry_run) {
    Json environment = Json::object();
    for (const auto& [name, value] : variables)
      environment[name] = value;
    Print(DryRunText(command, environment, no_daemon, global.json));
    return ExitCode::kOk;
  }
  if (!no_daemon.empty()) {
    fmt::print(stderr, "xschedctl: warning: {}; the command runs unscheduled until there is one\n", no_daemon);
  }
  for (const auto& [name, value] : variables)
    ::setenv(name, value.c_str(), 1);
  return tl::unexpected<Failure>(Execute(command));
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
