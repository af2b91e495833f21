// `xschedctl set`, `hold` and `release`: what changes clients. All answer alike, and all can be tried with --dry-run.
#include <memory>

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
  std::string reset;
  bool dry_run = false;
};

void AddChangeOptions(CLI::App& command, ChangeOptions& options) {
  AddSelectorOptions(command, options.selector);
  command.add_flag("--dry-run", options.dry_run, "say what would change and change nothing");
}

template <typename Request>
Outcome<ExitCode> Change(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                 v1::ChangeResponse*),
                         Request request, const ChangeOptions& options, const GlobalOptions& global) {
  const Result<v1::Selector> chosen = ParseSelector(options.selector, WhenEmpty::kIsError);
  if (!chosen) return UsageFailure(chosen.error());
  *request.mutable_selector() = *chosen;
  request.set_dry_run(options.dry_run);
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const Outcome<v1::ChangeResponse> answer = client->Call(method, request);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Print(global.json ? Document("change", ToJson(*answer, options.dry_run))
                    : RenderChange(*answer, options.dry_run, global.Style()));
  return ExitCode::kOk;
}

constexpr std::string_view kBoth = "both";

Result<v1::SetRequest> ParseSet(const ChangeOptions& options) {
  v1::SetRequest request;
  if (options.priority.empty() && options.weight.empty() && options.reset.empty()) {
    return Fail("set: nothing to set", "give --priority N, --weight W or --reset");
  }
  if (!options.reset.empty()) {
    const bool both = options.reset == kBoth;
    request.set_reset_priority(both || options.reset == "priority");
    request.set_reset_weight(both || options.reset == "weight");
    if (!request.reset_priority() && !request.reset_weight()) {
      return Fail("set: there is nothing called \"" + options.reset + "\" to reset",
                  "give --reset, --reset priority or --reset weight");
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
  if ((request.has_priority() && request.reset_priority()) || (request.has_weight() && request.reset_weight())) {
    return Fail("set: --reset contradicts the number", "give one or the other");
  }
  return request;
}

}  // namespace

Command AddSet(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command = app.add_subcommand("set", "Change priority and weight of live clients");
  auto options = std::make_shared<ChangeOptions>();
  AddChangeOptions(*command, *options);
  command->add_option("--priority", options->priority, "-100 to 100; larger is more important");
  command->add_option("--weight", options->weight, "1 to 10000; share among equals, 100 if not set");
  command
      ->add_option("--reset", options->reset,
                   "forget what was set, \"priority\", \"weight\" or both: rules and hints count again")
      ->expected(0, 1)
      ->default_str(std::string(kBoth));
  return {command, [=, &global]() -> Outcome<ExitCode> {
            const Result<v1::SetRequest> request = ParseSet(*options);
            if (!request) return UsageFailure(request.error());
            return Change(&v1::Admin::Stub::Set, *request, *options, global);
          }};
}

Command AddHold(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command = app.add_subcommand("hold", "Keep clients from submitting work until release");
  auto options = std::make_shared<ChangeOptions>();
  AddChangeOptions(*command, *options);
  return {command, [=, &global] { return Change(&v1::Admin::Stub::Hold, v1::HoldRequest(), *options, global); }};
}

Command AddRelease(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command = app.add_subcommand("release", "End a hold");
  auto options = std::make_shared<ChangeOptions>();
  AddChangeOptions(*command, *options);
  return {command, [=, &global] { return Change(&v1::Admin::Stub::Release, v1::ReleaseRequest(), *options, global); }};
}

}  // namespace xschedd::ctl
