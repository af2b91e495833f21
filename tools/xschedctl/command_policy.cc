// `xschedctl policy get` and `policy set`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "common/one_line.h"
#include "daemon/config/settings_message.h"
#include "tools/xschedctl/ask_daemon.h"
#include "tools/xschedctl/policy_file.h"
#include "tools/xschedctl/policy_settings.h"
#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {
namespace {

struct PolicyOptions {
  std::string name;
  std::array<std::string, std::size(policy::kSettings)> settings;  // as kSettings
  bool persist = false;
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

// `file`: where the settings were written; empty: nowhere.
void Show(const v1::Policy& answer, bool dry_run, const std::string& file, const GlobalOptions& global) {
  Json json = {{"dry_run", dry_run}, {"file", file.empty() ? Json() : Json(file)}};
  json.update(ToJson(answer));
  Print(global.json ? Document("policy", json) : RenderPolicy(answer));
  if (global.json) return;
  if (dry_run) Print("(dry run: nothing was changed)\n");
  if (!file.empty()) Print("written to " + OneLine(file) + "\n");
}

Outcome<v1::Policy> Set(const v1::SetPolicyRequest& request, AdminClient& client) {
  const Outcome<v1::Policy> answer = client.Call(request);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  if (const Result<void> taken = CheckTaken(request, *answer); !taken) {
    return tl::unexpected<Failure>({ExitCode::kRefused, taken.error()});
  }
  return *answer;
}

// Writes the file first: the daemon then accepts the settings only if its files agree; otherwise the file is restored.
Outcome<v1::Policy> Persist(v1::SetPolicyRequest request, AdminClient& client, std::string* path) {
  v1::SetPolicyRequest trial = request;
  trial.set_dry_run(true);
  if (Outcome<v1::Policy> may = Set(trial, client); !may) return may;
  const auto config = client.Call(v1::GetConfigRequest());
  if (!config) return tl::unexpected<Failure>(config.error());
  if (config->drop_in_folder().empty()) {
    return tl::unexpected<Failure>({ExitCode::kRefused,
                                    {"this daemon's release does not read conf.d; nothing was changed",
                                     "restart it, so that the installed release runs"}});
  }
  Outcome<PolicyFile> file = PolicyFile::Change(config->drop_in_folder(), request);
  if (!file) return tl::unexpected<Failure>(file.error());
  request.set_in_files(true);
  Outcome<v1::Policy> answer = Set(request, client);
  if (!answer) {
    if (answer.error().code == ExitCode::kRefused) answer.error().error.what += "; nothing was changed";
    return answer;
  }
  file->Keep();
  *path = file->Path();
  return answer;
}

Outcome<ExitCode> GetPolicy(const GlobalOptions& global) {
  const Outcome<v1::Policy> answer = AskDaemon(global, v1::GetPolicyRequest());
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Show(*answer, false, "", global);
  return ExitCode::kOk;
}

Outcome<ExitCode> SetPolicy(const PolicyOptions& options, const GlobalOptions& global) {
  if (options.IsEmpty()) {
    return UsageFailure({"policy set: nothing to set", "give a policy's name or one of its settings"});
  }
  const Result<v1::SetPolicyRequest> request = ParsePolicy(options);
  if (!request) return UsageFailure(request.error());
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  std::string file;
  const Outcome<v1::Policy> answer =
      options.persist && !options.dry_run ? Persist(*request, *client, &file) : Set(*request, *client);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Show(*answer, options.dry_run, file, global);
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
  set.AddFlag("--persist", options->persist,
              "also write it to conf.d/50-policy.toml beside the daemon's configuration, to survive reload and reboot");
  set.AddFlag("--dry-run", options->dry_run, "check and show; change nothing");
  return {{&get, [&global] { return GetPolicy(global); }},
          {&set, [options, &global] { return SetPolicy(*options, global); }}};
}

}  // namespace xschedd::ctl
