// The connection to the daemon: by admin.sock where the caller may open it, else by client.sock, which serves a user's
// own clients (docs/explanation/security-model.md). One connect(2) tells apart why there is no daemon (gRPC would
// report all of them alike, after waiting); the connected socket is then handed to gRPC, of which nothing shows here.
// Thread rule: one user at a time.
#pragma once

#include <memory>
#include <string>

#include "admin.pb.h"
#include "common/result.h"
#include "common/unique_fd.h"
#include "tools/xschedctl/exit_code.h"

namespace xschedd::ctl {

// What a command ends with when it fails: the status, and the line for the user.
struct Failure {
  ExitCode code;
  Error error;
};
template <typename T>
using Outcome = tl::expected<T, Failure>;

// Connects to a socket of the daemon. ENOENT, ECONNREFUSED, EACCES become "no daemon" and "permission denied", each
// with its remedy. `error_number`: connect's, where that is what failed.
Outcome<UniqueFd> ConnectSocket(const std::string& path, int* error_number = nullptr);

// The words for a failed connect(2), apart from the call so that they can be tested.
Failure ConnectFailure(const std::string& path, int error_number);

struct AdminConnection;

class AdminClient {
 public:
  static Outcome<AdminClient> Connect(const std::string& runtime_dir);
  // By client.sock, whatever the caller may open: as the caller's programs do.
  static Outcome<AdminClient> ConnectAsUser(const std::string& runtime_dir);

  AdminClient(AdminClient&&) noexcept;
  AdminClient& operator=(AdminClient&&) noexcept;
  ~AdminClient();

  // Whether it came by admin.sock.
  bool IsAdmin() const;

  // One call each, with a deadline. Warns on standard error of a change that is in force and that a restart of the
  // daemon would lose.
  Outcome<v1::GetVersionResponse> Call(const v1::GetVersionRequest& request);
  Outcome<v1::ListClientsResponse> Call(const v1::ListClientsRequest& request);
  Outcome<v1::ChangeResponse> Call(const v1::SetRequest& request);
  Outcome<v1::ChangeResponse> Call(const v1::HoldRequest& request);
  Outcome<v1::ChangeResponse> Call(const v1::ReleaseRequest& request);
  // In half a second or not: who asks has something else to do.
  Outcome<v1::GetCeilingResponse> Call(const v1::GetCeilingRequest& request);
  Outcome<v1::PutClaimResponse> Call(const v1::PutClaimRequest& request);
  Outcome<v1::DeleteClaimResponse> Call(const v1::DeleteClaimRequest& request);
  Outcome<v1::ListClaimsResponse> Call(const v1::ListClaimsRequest& request);
  Outcome<v1::Policy> Call(const v1::GetPolicyRequest& request);
  Outcome<v1::Policy> Call(const v1::SetPolicyRequest& request);
  Outcome<v1::Stats> Call(const v1::GetStatsRequest& request);
  Outcome<v1::MetricsText> Call(const v1::GetMetricsRequest& request);
  Outcome<v1::ExplainResponse> Call(const v1::ExplainRequest& request);
  Outcome<v1::GetConfigResponse> Call(const v1::GetConfigRequest& request);
  Outcome<v1::ReloadResponse> Call(const v1::ReloadRequest& request);
  Outcome<v1::DisableResponse> Call(const v1::DisableRequest& request);
  Outcome<v1::EnableResponse> Call(const v1::EnableRequest& request);
  Outcome<v1::DrainResponse> Call(const v1::DrainRequest& request);

 private:
  friend class EventStream;
  AdminClient(std::string socket_path, std::string why_not_admin, UniqueFd fd);

  std::unique_ptr<AdminConnection> connection_;
};

}  // namespace xschedd::ctl
