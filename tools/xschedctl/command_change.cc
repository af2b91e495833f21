// `xschedctl set`, `hold` and `release`: change clients. All print the same table and take --dry-run.
#include <memory>

#include "common/memory_limit.h"
#include "common/priority.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

struct ChangeOptions {
  SelectorOptions selector;
  std::string priority;
  std::string weight;
  std::string latency;
  std::string memory;
  std::string reset;
  bool dry_run = false;
};

void AddChangeOptions(CommandSyntax& command, ChangeOptions& options) {
  AddSelectorOptions(command, options.selector);
  command.AddFlag("--dry-run", options.dry_run, "show what would change; change nothing");
}

template <typename Request>
Outcome<ExitCode> Change(Request request, const ChangeOptions& options, const GlobalOptions& global) {
  const Result<v1::Selector> chosen = ParseSelector(options.selector, WhenEmpty::kIsError);
  if (!chosen) return UsageFailure(chosen.error());
  *request.mutable_selector() = *chosen;
  request.set_dry_run(options.dry_run);
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const Outcome<v1::ChangeResponse> answer = client->Call(request);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Print(global.json ? Document("change", ToJson(*answer, options.dry_run))
                    : RenderChange(*answer, options.dry_run, global.Style()));
  return ExitCode::kOk;
}

constexpr std::string_view kAll = "all";
constexpr std::string_view kNone = "none";

// `set --reset 4711`: a number is no setting's name, so it is the pid.
void TakePidBehindReset(ChangeOptions& options) {
  if (options.reset.empty() || options.reset.find_first_not_of("0123456789") != std::string::npos) return;
  options.selector.pids.push_back(options.reset);
  options.reset = kAll;
}

Result<v1::SetRequest> ParseSet(const ChangeOptions& options) {
  v1::SetRequest request;
  if (options.priority.empty() && options.weight.empty() && options.latency.empty() && options.memory.empty() &&
      options.reset.empty()) {
    return Fail("set: nothing to set", "give --priority N, --weight W, --latency L, --memory SIZE or --reset");
  }
  if (!options.reset.empty()) {
    const bool all = options.reset == kAll;
    request.set_reset_priority(all || options.reset == "priority");
    request.set_reset_weight(all || options.reset == "weight");
    request.set_reset_latency(all || options.reset == "latency");
    request.set_reset_memory_limit(all || options.reset == "memory");
    if (!request.reset_priority() && !request.reset_weight() && !request.reset_latency() &&
        !request.reset_memory_limit()) {
      return Fail("set: there is no setting \"" + options.reset + "\" to reset",
                  "give --reset, --reset priority, --reset weight, --reset latency or --reset memory");
    }
  }
  if (!options.priority.empty()) {
    const Result<int> priority = ParsePriority(options.priority);
    if (!priority) return tl::unexpected<Error>(priority.error());
    request.set_priority(*priority);
  }
  if (!options.weight.empty()) {
    const Result<std::uint32_t> weight = ParseWeight(options.weight);
    if (!weight) return tl::unexpected<Error>(weight.error());
    request.set_weight(*weight);
  }
  if (!options.latency.empty()) {
    const Result<std::string> latency = ParseLatency(options.latency);
    if (!latency) return tl::unexpected<Error>(latency.error());
    request.set_latency(*latency);
  }
  if (options.memory == kNone) {
    request.set_memory_limit(0);
  } else if (!options.memory.empty()) {
    const Result<std::uint64_t> limit = ParseMemoryLimit(options.memory);
    if (!limit) return tl::unexpected<Error>(limit.error());
    request.set_memory_limit(*limit);
  }
  if ((request.has_priority() && request.reset_priority()) || (request.has_weight() && request.reset_weight()) ||
      (!request.latency().empty() && request.reset_latency()) ||
      (request.has_memory_limit() && request.reset_memory_limit())) {
    return Fail("set: --reset contradicts a value for the same setting", "give one or the other");
  }
  return request;
}

}  // namespace

Command AddSet(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command =
      program.AddCommand("set", "Change priority, weight, latency and memory limit of live clients");
  auto options = std::make_shared<ChangeOptions>();
  AddChangeOptions(command, *options);
  command.AddOption("--priority", options->priority, "-100 to 100; larger is more important");
  command.AddOption("--weight", options->weight, "1 to 10000; share among equals, 100 if not set");
  command.AddOption("--latency", options->latency,
                    "\"strict\": others are held whenever it is busy; \"auto\": only where that helps it");
  command.AddOption(
      "--memory", options->memory,
      "the most device memory that each may have on a device, such as 24G, or \"none\"; administrators only",
      {.placeholder = "SIZE"});
  command.AddOption("--reset", options->reset,
                    "remove what was set (\"priority\", \"weight\", \"latency\", \"memory\" or all): rules and hints "
                    "apply again",
                    {.if_bare = std::string(kAll)});
  return {&command, [=, &global]() -> Outcome<ExitCode> {
            TakePidBehindReset(*options);
            const Result<v1::SetRequest> request = ParseSet(*options);
            if (!request) return UsageFailure(request.error());
            return Change(*request, *options, global);
          }};
}

Command AddHold(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("hold", "Keep clients from submitting work until release");
  auto options = std::make_shared<ChangeOptions>();
  AddChangeOptions(command, *options);
  return {&command, [=, &global] { return Change(v1::HoldRequest(), *options, global); }};
}

Command AddRelease(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("release", "End a hold");
  auto options = std::make_shared<ChangeOptions>();
  AddChangeOptions(command, *options);
  return {&command, [=, &global] { return Change(v1::ReleaseRequest(), *options, global); }};
}

}  // namespace xschedd::ctl
