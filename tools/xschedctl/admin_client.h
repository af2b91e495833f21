// The connection to the daemon: over admin.sock where the caller may open it, else over client.sock, which serves a
// user's own clients (docs/explanation/security-model.md). A plain connect(2) distinguishes the reasons why no daemon
// answers (gRPC would report them all alike, after a delay); the connected socket is then handed to gRPC, which this
// header hides. Thread rule: one user at a time.
#pragma once

#include <memory>
#include <string>

#include "admin.pb.h"
#include "common/result.h"
#include "common/unique_fd.h"
#include "tools/xschedctl/exit_code.h"

namespace xschedd::ctl {

// How a command failed: the exit status, and the line for the user.
struct Failure {
  ExitCode code;
  Error error;
};
template <typename T>
using Outcome = tl::expected<T, Failure>;

// Connects to a socket of the daemon. ENOENT, ECONNREFUSED, EACCES become "no daemon" and "permission denied", each
// with its remedy. `error_number`: why it failed.
Outcome<UniqueFd> ConnectSocket(const std::string& path, int* error_number = nullptr);

// The message for a failed ConnectUnix, separate from the call so that it can be tested.
Failure ConnectFailure(const std::string& path, int error_number);

struct AdminConnection;

class AdminClient {
 public:
  static Outcome<AdminClient> Connect(const std::string& runtime_dir);
  // Over client.sock, as the caller's programs connect, even where admin.sock is permitted.
  static Outcome<AdminClient> ConnectAsUser(const std::string& runtime_dir);

  AdminClient(AdminClient&&) noexcept;
  AdminClient& operator=(AdminClient&&) noexcept;
  ~AdminClient();

  // Whether the connection is over admin.sock.
  bool IsAdmin() const;

  // Each makes one call with a deadline. Warns on standard error about a change that is in force but that a restart of
  // the daemon would lose.
  Outcome<v1::GetVersionResponse> Call(const v1::GetVersionRequest& request);
  Outcome<v1::ListClientsResponse> Call(const v1::ListClientsRequest& request);
  Outcome<v1::ChangeResponse> Call(const v1::SetRequest& request);
  Outcome<v1::ChangeResponse> Call(const v1::HoldRequest& request);
  Outcome<v1::ChangeResponse> Call(const v1::ReleaseRequest& request);
  // Limited to 500 ms: `run` must not delay its command.
  Outcome<v1::GetCeilingResponse> Call(const v1::GetCeilingRequest& request);
  Outcome<v1::PutClaimResponse> Call(const v1::PutClaimRequest& request);
  Outcome<v1::DeleteClaimResponse> Call(const v1::DeleteClaimRequest& request);
  Outcome<v1::ListClaimsResponse> Call(const v1::ListClaimsRequest& request);
  Outcome<v1::ReportClaimsResponse> Call(const v1::ReportClaimsRequest& request);
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
