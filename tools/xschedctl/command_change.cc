// `xschedctl set`, `hold` and `release`: what changes clients. All answer alike, and all can be tried with --dry-run.
#include <memory>

#include "common/priority.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {
namespace {

struct ChangeOptions {
  SelectorOptions selector;
  std::string priority;
  bool reset = false;
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
  Print(global.json ? Line(ToJson(*answer, options.dry_run)) : RenderChange(*answer, options.dry_run, global.Style()));
  return ExitCode::kOk;
}

Outcome<ExitCode> Set(const ChangeOptions& options, const GlobalOptions& global) {
  if (options.reset == !options.priority.empty()) {
    return UsageFailure({"set: nothing to set", "give either --priority N or --reset"});
  }
  if (options.reset) {
    return Change(&v1::Admin::Stub::ResetPriority, v1::ResetPriorityRequest(), options, global);
  }
  const Result<int> priority = ParsePriority(options.priority);
  if (!priority) return UsageFailure(priority.error());
  v1::SetPriorityRequest request;
  request.set_priority(*priority);
  return Change(&v1::Admin::Stub::SetPriority, request, options, global);
}

}  // namespace

Command AddSet(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command = app.add_subcommand("set", "Change the priority of live clients");
  auto options = std::make_shared<ChangeOptions>();
  AddChangeOptions(*command, *options);
  command->add_option("--priority", options->priority, "-100 to 100; larger is more important");
  command->add_flag("--reset", options->reset, "forget what was set: rules and hints count again");
  return {command, [=, &global] { return Set(*options, global); }};
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
