#include "tools/xschedctl/admin_client.h"

#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "common/runtime_dir.h"
#include "common/unix_socket.h"
#include "tools/xschedctl/admin_connection.h"

namespace xschedd::ctl {
namespace {

// The daemon answers in microseconds; one that needs longer than this is stopped or stuck.
constexpr std::chrono::seconds kDeadline{5};
constexpr std::chrono::milliseconds kCeilingDeadline{500};
constexpr std::chrono::milliseconds kShutdownGrace{50};

void WarnIfNotSaved(const std::string& why) {
  if (why.empty()) return;
  std::fprintf(stderr, "xschedctl: warning: done, but not saved: a restart of xschedd loses it: %s\n", why.c_str());
}

template <typename Request, typename Answer>
Outcome<Answer> CallBy(const AdminConnection& connection,
                       grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&, Answer*),
                       const Request& request, std::chrono::milliseconds deadline = kDeadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  Answer answer;
  const grpc::Status status = (connection.stub.get()->*method)(&context, request, &answer);
  if (!status.ok()) return tl::unexpected<Failure>(connection.Explain(status));
  if constexpr (requires { answer.not_saved(); }) WarnIfNotSaved(answer.not_saved());
  return answer;
}

}  // namespace

Failure ConnectFailure(const std::string& path, int error_number) {
  const std::string reason = std::strerror(error_number);
  switch (error_number) {
    case ENOENT:
      return {ExitCode::kNoDaemon,
              {"no daemon: there is no " + path,
               "start xschedd, or name its folder with --runtime-dir or $" + std::string(kRuntimeDirVariable)}};
    case ECONNREFUSED:
      return {ExitCode::kNoDaemon,
              {"no daemon: nothing listens on " + path + " (a dead daemon left it behind)", "start xschedd"}};
    case EACCES:
    case EPERM:
      return {ExitCode::kPermission,
              {"cannot open " + path + ": " + reason, "run as root or as a member of group xschedd"}};
    case EAGAIN:
      return {ExitCode::kTimeout, {"the daemon at " + path + " accepts no connections", "check whether it is stopped"}};
    case ENAMETOOLONG:
      return {ExitCode::kUsage, {"the socket's path is too long: " + path, "choose a shorter runtime folder"}};
    case EMFILE:
    case ENFILE:
      return {ExitCode::kRefused, {"cannot make a socket: " + reason, "check the limits of this process (ulimit -n)"}};
    default:
      return {ExitCode::kNoDaemon, {"cannot connect to " + path + ": " + reason, "check whether xschedd is running"}};
  }
}

Outcome<UniqueFd> ConnectSocket(const std::string& path, int* error_number) {
  // Not blocking: gRPC needs it so, and a daemon that accepts nothing must not hang us here.
  UniqueFd fd = ConnectUnix(path, SOCK_NONBLOCK);
  if (fd.IsValid()) return fd;
  const int reason = errno;
  if (error_number != nullptr) *error_number = reason;
  return tl::unexpected<Failure>(ConnectFailure(path, reason));
}

Outcome<AdminClient> AdminClient::Connect(const std::string& runtime_dir) {
  // Silences gRPC's own messages on standard error. Must come before the first gRPC call; a value that the user set
  // stays.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  const std::string folder = RuntimeDir(runtime_dir);
  const std::string path = AdminSocketPath(folder);
  int reason = 0;
  Outcome<UniqueFd> fd = ConnectSocket(path, &reason);
  if (fd) return AdminClient(path, {}, std::move(*fd));
  // admin.sock may be forbidden, or missing, as in a container that has only client.sock.
  const std::string users_path = ClientSocketPath(folder);
  Outcome<UniqueFd> users_fd = ConnectSocket(users_path);
  const bool is_denied = reason == EACCES || reason == EPERM;
  if (!is_denied && reason != ENOENT) return tl::unexpected<Failure>(fd.error());
  if (!users_fd) {
    // If nothing listens on either socket, that matters more than this user's rights.
    const bool is_dead = is_denied && users_fd.error().code == ExitCode::kNoDaemon;
    return tl::unexpected<Failure>(is_dead ? users_fd.error() : fd.error());
  }
  return AdminClient(users_path, path + " cannot be opened: " + std::strerror(reason), std::move(*users_fd));
}

Outcome<AdminClient> AdminClient::ConnectAsUser(const std::string& runtime_dir) {
  setenv("GRPC_VERBOSITY", "NONE", 0);
  const std::string path = ClientSocketPath(RuntimeDir(runtime_dir));
  Outcome<UniqueFd> fd = ConnectSocket(path);
  if (!fd) return tl::unexpected<Failure>(fd.error());
  return AdminClient(path, "connected as a user", std::move(*fd));
}

AdminClient::AdminClient(std::string socket_path, std::string why_not_admin, UniqueFd fd)
    : connection_(std::make_unique<AdminConnection>(std::move(socket_path), std::move(why_not_admin), std::move(fd))) {}
AdminClient::AdminClient(AdminClient&&) noexcept = default;
AdminClient& AdminClient::operator=(AdminClient&&) noexcept = default;
AdminClient::~AdminClient() = default;

bool AdminClient::IsAdmin() const {
  return connection_->why_not_admin.empty();
}

Outcome<v1::GetVersionResponse> AdminClient::Call(const v1::GetVersionRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::GetVersion, request);
}

Outcome<v1::ListClientsResponse> AdminClient::Call(const v1::ListClientsRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::ListClients, request);
}

Outcome<v1::ChangeResponse> AdminClient::Call(const v1::SetRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::Set, request);
}

Outcome<v1::ChangeResponse> AdminClient::Call(const v1::HoldRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::Hold, request);
}

Outcome<v1::ChangeResponse> AdminClient::Call(const v1::ReleaseRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::Release, request);
}

Outcome<v1::GetCeilingResponse> AdminClient::Call(const v1::GetCeilingRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::GetCeiling, request, kCeilingDeadline);
}

Outcome<v1::PutClaimResponse> AdminClient::Call(const v1::PutClaimRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::PutClaim, request);
}

Outcome<v1::DeleteClaimResponse> AdminClient::Call(const v1::DeleteClaimRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::DeleteClaim, request);
}

Outcome<v1::ListClaimsResponse> AdminClient::Call(const v1::ListClaimsRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::ListClaims, request);
}

Outcome<v1::ReportClaimsResponse> AdminClient::Call(const v1::ReportClaimsRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::ReportClaims, request);
}

Outcome<v1::Policy> AdminClient::Call(const v1::GetPolicyRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::GetPolicy, request);
}

Outcome<v1::Policy> AdminClient::Call(const v1::SetPolicyRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::SetPolicy, request);
}

Outcome<v1::Stats> AdminClient::Call(const v1::GetStatsRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::GetStats, request);
}

Outcome<v1::MetricsText> AdminClient::Call(const v1::GetMetricsRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::GetMetrics, request);
}

Outcome<v1::ExplainResponse> AdminClient::Call(const v1::ExplainRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::Explain, request);
}

Outcome<v1::GetConfigResponse> AdminClient::Call(const v1::GetConfigRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::GetConfig, request);
}

Outcome<v1::ReloadResponse> AdminClient::Call(const v1::ReloadRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::Reload, request);
}

Outcome<v1::DisableResponse> AdminClient::Call(const v1::DisableRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::Disable, request);
}

Outcome<v1::EnableResponse> AdminClient::Call(const v1::EnableRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::Enable, request);
}

Outcome<v1::DrainResponse> AdminClient::Call(const v1::DrainRequest& request) {
  return CallBy(*connection_, &v1::Admin::Stub::Drain, request);
}

AdminConnection::AdminConnection(std::string path, std::string reason, UniqueFd fd)
    : socket_path(std::move(path)),
      why_not_admin(std::move(reason)),
      stub(v1::Admin::NewStub(grpc::CreateInsecureChannelFromFd("xschedd", fd.Release()))) {}

Failure AdminConnection::Explain(const grpc::Status& status) const {
  const bool unavailable = status.error_code() == grpc::StatusCode::UNAVAILABLE;
  bool still_listening = unavailable && ConnectSocket(socket_path).has_value();
  if (still_listening) {
    // A dying daemon closes this connection before or after its listening socket: look again a moment later.
    std::this_thread::sleep_for(kShutdownGrace);
    still_listening = ConnectSocket(socket_path).has_value();
  }
  const ExitCode code = ExitCodeOf(status.error_code(), still_listening);
  if (code == ExitCode::kTimeout) {
    return {code, {"the daemon did not answer within 5 s", "check whether it is stopped, or restart it"}};
  }
  if (code == ExitCode::kNoDaemon)
    return {code, {"the daemon went away during the call", "check its log, then try again"}};
  if (unavailable) {
    return {code,
            {"the daemon closed the connection: " + status.error_message(),
             "try again; if it refused it, as for a quota, its log says why"}};
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return {code, {"this daemon does not know the command", "use the xschedctl of the same release"}};
  }
  const bool by_socket = code == ExitCode::kPermission && !why_not_admin.empty();
  return {code, {status.error_message() + (by_socket ? " (over " + socket_path + "; " + why_not_admin + ")" : ""), ""}};
}

}  // namespace xschedd::ctl
