// `xschedctl policy get` and `policy set`.
#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>

#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

constexpr std::string_view kByVendor = "vendor";

struct PolicyOptions {
  std::string name, tolerance, linger, guard, window, top_window, max_concurrent, turn, share_slack, laxity_margin,
      fair_quantum, time_slices;
  bool dry_run = false;

  bool IsEmpty() const {
    const std::string* const all[] = {&name,        &tolerance,     &linger,         &guard,
                                      &window,      &top_window,    &max_concurrent, &turn,
                                      &share_slack, &laxity_margin, &fair_quantum,   &time_slices};
    return std::all_of(std::begin(all), std::end(all), [](const std::string* text) { return text->empty(); });
  }
};

Result<v1::SetPolicyRequest> ParsePolicy(const PolicyOptions& options) {
  v1::SetPolicyRequest request;
  request.set_dry_run(options.dry_run);
  if (!options.name.empty()) request.set_name(options.name);
  struct Duration {
    const std::string& text;
    Result<std::uint32_t> (*parse)(std::string_view);
    void (v1::SetPolicyRequest::*set)(std::uint32_t);
  };
  using Request = v1::SetPolicyRequest;
  const Duration durations[] = {
      {options.linger, ParseMicroseconds, &Request::set_linger_us},
      {options.guard, ParseMilliseconds, &Request::set_guard_ms_per_s},
      {options.window, ParseMicroseconds, &Request::set_window_us},
      {options.top_window, ParseMicroseconds, &Request::set_top_window_us},
      {options.turn, ParseMilliseconds, &Request::set_turn_ms},
      {options.share_slack, ParseMicroseconds, &Request::set_share_slack_us},
      {options.laxity_margin, ParseMicroseconds, &Request::set_laxity_margin_us},
      {options.fair_quantum, ParseMilliseconds, &Request::set_fair_quantum_ms},
  };
  for (const Duration& duration : durations) {
    if (duration.text.empty()) continue;
    const Result<std::uint32_t> value = duration.parse(duration.text);
    if (!value) return tl::unexpected<Error>(value.error());
    (request.*duration.set)(*value);
  }
  if (!options.tolerance.empty()) {
    const auto value = ParseNumber(options.tolerance, "number of percent", std::numeric_limits<std::uint32_t>::max());
    if (!value) return tl::unexpected<Error>(value.error());
    request.set_tolerance_percent(static_cast<std::uint32_t>(*value));
  }
  if (options.max_concurrent == kByVendor) {
    request.set_max_concurrent_by_vendor(true);
  } else if (!options.max_concurrent.empty()) {
    const auto value = ParseNumber(options.max_concurrent, "number of clients, nor \"vendor\"",
                                   std::numeric_limits<std::uint32_t>::max());
    if (!value) return tl::unexpected<Error>(value.error());
    request.set_max_concurrent(static_cast<std::uint32_t>(*value));
  }
  if (!options.time_slices.empty()) request.set_time_slices(options.time_slices);
  return request;
}

template <typename Request>
Outcome<ExitCode> Ask(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&, v1::Policy*),
                      const Request& request, bool dry_run, const GlobalOptions& global) {
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const Outcome<v1::Policy> answer = client->Call(method, request);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Json json = {{"dry_run", dry_run}};
  json.update(ToJson(*answer));
  Print(global.json ? Document("policy", json) : RenderPolicy(*answer));
  if (dry_run && !global.json) Print("(dry run: nothing was changed)\n");
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
  set->add_option("--linger", options->linger,
                  "how long gates stay shut after the important client became idle (default 200us)");
  set->add_option("--guard", options->guard,
                  "time of each second of a GPU for held clients, in turns; 0: off (default 10ms)");
  set->add_option("--window", options->window,
                  "GPU time that clients below the top may have in flight; 0: no limit (default 500us)");
  set->add_option("--top-window", options->top_window,
                  "the same for the top itself, beside others; 0: no limit (default 20ms)");
  set->add_option("--max-concurrent", options->max_concurrent,
                  "background clients open on a device; 0: no limit; vendor: as each device has it (default vendor)");
  set->add_option("--tolerance", options->tolerance,
                  "by how many percent an important client may be slower for each of the others, four at most; 0: "
                  "always hold (default 5)");
  set->add_option("--turn", options->turn, "length of a background turn (default 25ms)");
  set->add_option("--share-slack", options->share_slack,
                  "share: GPU time by which a client may be ahead of its share (default 5ms)");
  set->add_option("--laxity-margin", options->laxity_margin,
                  "laxity: how long before its latest start a client becomes urgent (default 5ms)");
  set->add_option("--fair-quantum", options->fair_quantum,
                  "fair: GPU time after which a client goes down a level (default 20ms)");
  set->add_option("--time-slices", options->time_slices,
                  "whether clients set their own time slices where the device has them (default off)")
      ->type_name("auto|off");
  set->add_flag("--dry-run", options->dry_run, "check and show, change nothing");
  return {{get, [&global] { return Ask(&v1::Admin::Stub::GetPolicy, v1::GetPolicyRequest(), false, global); }},
          {set, [options, &global]() -> Outcome<ExitCode> {
             if (options->IsEmpty()) {
               return UsageFailure({"policy set: nothing to set", "give a policy's name or one of its settings"});
             }
             const Result<v1::SetPolicyRequest> request = ParsePolicy(*options);
             if (!request) return UsageFailure(request.error());
             return Ask(&v1::Admin::Stub::SetPolicy, *request, options->dry_run, global);
           }}};
}

}  // namespace xschedd::ctl
