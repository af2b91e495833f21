// The calls about the daemon as a whole: its configuration, and whether it schedules at all.
#include <filesystem>
#include <system_error>

#include "daemon/admin/admin_operations.h"
#include "daemon/admin/conversion.h"
#include "daemon/config/conversion.h"
#include "daemon/config/files.h"

namespace xschedd {
namespace {

using grpc::Status;
using grpc::StatusCode;

}  // namespace

Status AdminOperations::GetConfig(const Actor&, const v1::GetConfigRequest&, v1::GetConfigResponse& response) {
  FillConfiguration(core_.Source().path, core_.Settings(),
                    DescribeLive(core_.Settings(), core_.FilePolicy(), !core_.Source().policy_override.empty(),
                                 core_.Source().software_gpu),
                    response);
  std::error_code none;  // if the working folder is gone, the path is returned as it was given
  const std::string folder = DropInFolder(core_.Source().path);
  const std::filesystem::path absolute = std::filesystem::absolute(folder, none);
  response.set_drop_in_folder(none ? folder : absolute.native());
  return Status::OK;
}

Status AdminOperations::Reload(const Actor& by, const v1::ReloadRequest& request, v1::ReloadResponse& response) {
  const std::vector<Setting> before = Describe(core_.Settings());
  if (request.dry_run()) {
    const auto fresh = core_.Source().Load();
    if (!fresh)
      return {StatusCode::FAILED_PRECONDITION, fresh.error().Line() + "; a reload would keep the old configuration"};
    FillChanges(before, Describe(*fresh), response);
    return Status::OK;
  }
  const auto notes = core_.Reload(by);
  if (!notes) return {StatusCode::FAILED_PRECONDITION, notes.error().Line() + "; the old configuration stays"};
  for (const std::string& note : *notes)
    response.add_notes(note);
  FillChanges(before, Describe(core_.Settings()), response);
  return Status::OK;
}

Status AdminOperations::Disable(const Actor& by, const v1::DisableRequest& request, v1::DisableResponse& response) {
  response.set_was_disabled(!core_.IsEnabled());
  if (!request.dry_run()) {
    connections_.AcceptShims(false);
    core_.Disable(by);
  }
  response.set_clients(static_cast<std::uint32_t>(core_.Clients().Clients().size()));
  return Status::OK;
}

Status AdminOperations::Enable(const Actor& by, const v1::EnableRequest& request, v1::EnableResponse& response) {
  response.set_was_enabled(core_.IsEnabled());
  if (!request.dry_run()) {
    core_.Enable(by);
    connections_.AcceptShims(true);
  }
  response.set_clients(static_cast<std::uint32_t>(core_.Clients().Clients().size()));
  return Status::OK;
}

Status AdminOperations::Drain(const Actor& by, const v1::DrainRequest& request, v1::DrainResponse& response) {
  v1::DisableRequest same;
  same.set_dry_run(request.dry_run());
  v1::DisableResponse answer;
  Status status = Disable(by, same, answer);
  response.set_clients(answer.clients());
  return status;
}

}  // namespace xschedd
