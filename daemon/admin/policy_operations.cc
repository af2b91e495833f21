// The calls about the policy and its settings.
#include <optional>
#include <string>
#include <utility>

#include "common/one_line.h"
#include "daemon/admin/admin_operations.h"
#include "daemon/admin/conversion.h"
#include "daemon/config/settings_message.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

using grpc::Status;
using grpc::StatusCode;

// Takes all settings of the request; on an error, `settings` must not be used.
Result<void> TakeSettings(const v1::SetPolicyRequest& request, policy::Settings& settings) {
  for (const auto& [key, value] : request.settings()) {
    if (policy::RowFrom(key) == nullptr)
      return Fail("there is no setting \"" + CleanText(key, 64) + "\"", "xschedctl policy set --help lists them");
  }
  for (const policy::SettingRow& row : policy::kSettings) {
    const auto value = FindSetting(row, request);
    if (!value) return tl::unexpected<Error>(value.error());
    if (!*value) continue;
    if (Result<void> taken = policy::Set(row, **value, settings); !taken) return taken;
  }
  return {};
}

// What a restart would set `key` ("policy.turn_ms") to, and where that comes from.
Error NotInFiles(const std::string& key, const std::string& value, const Config& files) {
  const std::string would_be = key + " would be " + value + " after a restart";
  const auto place = files.places.find(key);
  if (place == files.places.end()) {
    return {would_be + ", the default", "check that the daemon reads the file that was written"};
  }
  return {would_be + ", from " + OneLine(place->second.file) + ":" + std::to_string(place->second.line),
          "change it there"};
}

// Fails if the files give other values than the request.
Result<void> CheckFiles(const v1::SetPolicyRequest& request, const policy::Settings& settings,
                        const ConfigSource& source, const Config& files) {
  if (request.has_name() && settings.name != files.policy.name) {
    const std::string name(policy::Text(files.policy.name));
    if (source.policy_override.empty()) return tl::unexpected(NotInFiles("policy.name", name, files));
    return Fail("the daemon was started with --policy " + name + ", which overrides every file",
                "start it without that option");
  }
  for (const policy::SettingRow& row : policy::kSettings) {
    const auto given = FindSetting(row, request);
    if (!given || !*given || policy::Get(row, files.policy) == policy::Get(row, settings)) continue;
    const std::string key = std::string(row.Section()) + "." + std::string(row.key);
    return tl::unexpected(NotInFiles(key, policy::Text(row, policy::Get(row, files.policy)), files));
  }
  return {};
}

}  // namespace

Status AdminOperations::GetPolicy(const Actor&, const v1::GetPolicyRequest&, v1::Policy& response) {
  FillPolicy(core_.Settings().policy, response);
  return Status::OK;
}

Status AdminOperations::SetPolicy(const Actor& by, const v1::SetPolicyRequest& request, v1::Policy& response) {
  policy::Settings settings = core_.Settings().policy;
  if (request.has_name()) {
    const auto name = policy::NameFrom(request.name());
    if (!name) {
      return {StatusCode::INVALID_ARGUMENT, "there is no such policy; choose " + policy::NamesText()};
    }
    settings.name = *name;
  }
  if (Result<void> taken = TakeSettings(request, settings); !taken) {
    return {StatusCode::INVALID_ARGUMENT, taken.error().Line()};
  }
  std::optional<Config> files;
  if (request.in_files()) {
    Result<Config> read = core_.Source().Load();
    if (!read) return {StatusCode::FAILED_PRECONDITION, read.error().Line()};
    if (const Result<void> same = CheckFiles(request, settings, core_.Source(), *read); !same) {
      return {StatusCode::FAILED_PRECONDITION, same.error().Line()};
    }
    files = std::move(*read);
  }
  if (!request.dry_run()) core_.SetPolicy(settings, by, files ? &*files : nullptr);
  FillPolicy(settings, response);
  return Status::OK;
}

}  // namespace xschedd
