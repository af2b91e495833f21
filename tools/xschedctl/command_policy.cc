// `xschedctl policy get` and `policy set`.
#include <limits>
#include <memory>

#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

struct PolicyOptions {
  std::string name, linger, guard, window, top_window, max_concurrent, turn;
  bool dry_run = false;

  bool IsEmpty() const {
    return name.empty() && linger.empty() && guard.empty() && window.empty() && top_window.empty() &&
           max_concurrent.empty() && turn.empty();
  }
};

Result<v1::SetPolicyRequest> ParsePolicy(const PolicyOptions& options) {
  v1::SetPolicyRequest request;
  request.set_dry_run(options.dry_run);
  if (!options.name.empty()) request.set_name(options.name);
  if (!options.linger.empty()) {
    const auto value = ParseMicroseconds(options.linger);
    if (!value) return tl::unexpected<Error>(value.error());
    request.set_linger_us(*value);
  }
  if (!options.guard.empty()) {
    const auto value = ParseMilliseconds(options.guard);
    if (!value) return tl::unexpected<Error>(value.error());
    request.set_guard_ms_per_s(*value);
  }
  if (!options.window.empty()) {
    const auto value = ParseMicroseconds(options.window);
    if (!value) return tl::unexpected<Error>(value.error());
    request.set_window_us(*value);
  }
  if (!options.top_window.empty()) {
    const auto value = ParseMicroseconds(options.top_window);
    if (!value) return tl::unexpected<Error>(value.error());
    request.set_top_window_us(*value);
  }
  if (!options.max_concurrent.empty()) {
    const auto value =
        ParseNumber(options.max_concurrent, "number of clients", std::numeric_limits<std::uint32_t>::max());
    if (!value) return tl::unexpected<Error>(value.error());
    request.set_max_concurrent(static_cast<std::uint32_t>(*value));
  }
  if (!options.turn.empty()) {
    const auto value = ParseMilliseconds(options.turn);
    if (!value) return tl::unexpected<Error>(value.error());
    request.set_turn_ms(*value);
  }
  return request;
}

template <typename Request>
Outcome<ExitCode> Ask(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&, v1::Policy*),
                      const Request& request, const GlobalOptions& global) {
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const Outcome<v1::Policy> answer = client->Call(method, request);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Print(global.json ? Line(ToJson(*answer)) : RenderPolicy(*answer));
  return ExitCode::kOk;
}

}  // namespace

std::vector<Command> AddPolicy(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const policy = app.add_subcommand("policy", "Show or change how clients are scheduled");
  policy->require_subcommand(1);
  CLI::App* const get = policy->add_subcommand("get", "Show the policy and its settings");
  CLI::App* const set = policy->add_subcommand("set", "Change the policy or its settings; acts at once");
  auto options = std::make_shared<PolicyOptions>();
  set->add_option("name", options->name, "name of the policy (policy get lists them)");
  set->add_option("--linger", options->linger, "how long gates stay shut after the important one went idle: 500us");
  set->add_option("--guard", options->guard, "turn of every busy client in each second: 10ms; 0 is off");
  set->add_option("--window", options->window, "GPU time that clients below the top may have in flight: 2ms");
  set->add_option("--top-window", options->top_window, "the same for the top itself, beside others: 20ms; 0: no limit");
  set->add_option("--max-concurrent", options->max_concurrent, "background clients open on a device; 0: no limit");
  set->add_option("--turn", options->turn, "length of a background turn: 25ms");
  set->add_flag("--dry-run", options->dry_run, "check and show, change nothing");
  return {{get, [&global] { return Ask(&v1::Admin::Stub::GetPolicy, v1::GetPolicyRequest(), global); }},
          {set, [options, &global]() -> Outcome<ExitCode> {
             if (options->IsEmpty()) {
               return UsageFailure({"policy set: nothing to set", "give a policy's name or one of its settings"});
             }
             const Result<v1::SetPolicyRequest> request = ParsePolicy(*options);
             if (!request) return UsageFailure(request.error());
             return Ask(&v1::Admin::Stub::SetPolicy, *request, global);
           }}};
}

}  // namespace xschedd::ctl
