// The policy and its settings.
#include "daemon/admin/admin_operations.h"
#include "daemon/admin/conversion.h"
#include "daemon/config/settings_message.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

using grpc::Status;
using grpc::StatusCode;

// All of the request, or none of it counts.
Result<void> TakeSettings(const v1::SetPolicyRequest& request, policy::Settings& settings) {
  for (const auto& [key, value] : request.settings()) {
    if (policy::RowFrom(key) == nullptr)
      return Fail("there is no setting \"" + CleanText(key, 64) + "\"", "policy set --help lists them");
  }
  for (const policy::SettingRow& row : policy::kSettings) {
    const auto value = FindSetting(row, request);
    if (!value) return tl::unexpected<Error>(value.error());
    if (!*value) continue;
    if (Result<void> taken = policy::Set(row, **value, settings); !taken) return taken;
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
  if (!request.dry_run()) core_.SetPolicy(settings, by);
  FillPolicy(settings, response);
  return Status::OK;
}

}  // namespace xschedd
