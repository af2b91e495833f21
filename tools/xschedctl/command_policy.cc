// `xschedctl policy get` and `policy set`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "daemon/config/settings_message.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/policy_settings.h"
#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {
namespace {

struct PolicyOptions {
  std::string name;
  std::array<std::string, std::size(policy::kSettings)> settings;  // as kSettings
  bool dry_run = false;

  bool IsEmpty() const {
    return name.empty() &&
           std::all_of(settings.begin(), settings.end(), [](const std::string& text) { return text.empty(); });
  }
};

Result<v1::SetPolicyRequest> ParsePolicy(const PolicyOptions& options) {
  v1::SetPolicyRequest request;
  request.set_dry_run(options.dry_run);
  if (!options.name.empty()) request.set_name(options.name);
  for (std::size_t i = 0; i < options.settings.size(); ++i) {
    if (options.settings[i].empty()) continue;
    const policy::SettingRow& row = policy::kSettings[i];
    const Result<policy::Value> value = ParseSetting(row, options.settings[i]);
    if (!value) return tl::unexpected<Error>(value.error());
    PutSetting(row, *value, request);
  }
  return request;
}

void Show(const v1::Policy& answer, bool dry_run, const GlobalOptions& global) {
  Json json = {{"dry_run", dry_run}};
  json.update(ToJson(answer));
  Print(global.json ? Document("policy", json) : RenderPolicy(answer));
  if (dry_run && !global.json) Print("(dry run: nothing was changed)\n");
}

template <typename Request>
Outcome<v1::Policy> Ask(const Request& request, const GlobalOptions& global) {
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  return client->Call(request);
}

Outcome<ExitCode> GetPolicy(const GlobalOptions& global) {
  const Outcome<v1::Policy> answer = Ask(v1::GetPolicyRequest(), global);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Show(*answer, false, global);
  return ExitCode::kOk;
}

Outcome<ExitCode> SetPolicy(const PolicyOptions& options, const GlobalOptions& global) {
  if (options.IsEmpty()) {
    return UsageFailure({"policy set: nothing to set", "give a policy's name or one of its settings"});
  }
  const Result<v1::SetPolicyRequest> request = ParsePolicy(options);
  if (!request) return UsageFailure(request.error());
  const Outcome<v1::Policy> answer = Ask(*request, global);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  if (const Result<void> taken = CheckTaken(*request, *answer); !taken) {
    return tl::unexpected<Failure>({ExitCode::kRefused, taken.error()});
  }
  Show(*answer, options.dry_run, global);
  return ExitCode::kOk;
}

}  // namespace

std::vector<Command> AddPolicy(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& policy = program.AddCommand("policy", "Show or change how clients are scheduled");
  policy.RequireCommand();
  CommandSyntax& get = policy.AddCommand("get", "Show the policy and its settings");
  CommandSyntax& set = policy.AddCommand("set", "Change the policy or its settings; acts at once");
  auto options = std::make_shared<PolicyOptions>();
  set.AddOption("name", options->name, "policy",
                {.placeholder = fmt::format("{}", fmt::join(policy::NameTexts(), "|"))});
  const policy::Settings defaults;
  for (std::size_t i = 0; i < options->settings.size(); ++i) {
    const policy::SettingRow& row = policy::kSettings[i];
    set.AddOption("--" + OptionOf(row), options->settings[i],
                  fmt::format("{} (default {})", HelpOf(row), SettingText(row, policy::Get(row, defaults))),
                  {.placeholder = Placeholder(row)});
  }
  set.AddFlag("--dry-run", options->dry_run, "check and show, change nothing");
  return {{&get, [&global] { return GetPolicy(global); }},
          {&set, [options, &global] { return SetPolicy(*options, global); }}};
}

}  // namespace xschedd::ctl
