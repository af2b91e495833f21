#include "tools/nri/claims.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include "admin.grpc.pb.h"
#include "common/runtime_dir.h"
#include "tools/nri/unix_socket.h"

namespace xschedd::nri {

// False: there is no such claim.
template <typename Method, typename Request, typename Answer>
Result<bool> DaemonClaims::Call(Method method, const Request& request, Answer& answer) {
  const std::string path = AdminSocketPath(runtime_dir_);
  if (std::chrono::steady_clock::now() < silent_until_)
    return Fail("the daemon at " + path + " did not answer a moment ago", "check whether it is stopped");
  Result<UniqueFd> fd = ConnectTo(path, UnixSocket::kNonBlocking);
  if (!fd) return tl::unexpected(fd.error());
  const auto stub = v1::Admin::NewStub(grpc::CreateInsecureChannelFromFd("xschedd", fd->Release()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  const grpc::Status status = (stub.get()->*method)(&context, request, &answer);
  if (status.ok()) return true;
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return false;
  if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED)
    return Fail("the daemon says: " + status.error_message());
  silent_until_ = std::chrono::steady_clock::now() + kPause;
  return Fail("the daemon at " + path + " did not answer within " + std::to_string(kLimit.count()) + " ms",
              "check whether it is stopped");
}

Result<void> DaemonClaims::Put(const v1::Claim& claim) {
  v1::PutClaimRequest request;
  *request.mutable_claim() = claim;
  v1::PutClaimResponse answer;
  const Result<bool> called = Call(&v1::Admin::Stub::PutClaim, request, answer);
  if (!called) return tl::unexpected(called.error());
  if (!*called) return Fail("the daemon does not know the claim");
  return {};
}

Result<void> DaemonClaims::Delete(const std::string& name) {
  v1::DeleteClaimRequest request;
  request.set_name(name);
  v1::DeleteClaimResponse answer;
  const Result<bool> called = Call(&v1::Admin::Stub::DeleteClaim, request, answer);
  if (!called) return tl::unexpected(called.error());
  return {};
}

Result<std::vector<std::string>> DaemonClaims::Names() {
  v1::ListClaimsResponse answer;
  const Result<bool> called = Call(&v1::Admin::Stub::ListClaims, v1::ListClaimsRequest(), answer);
  if (!called) return tl::unexpected(called.error());
  std::vector<std::string> names;
  for (const v1::Claim& claim : answer.claims())
    names.push_back(claim.name());
  return names;
}

}  // namespace xschedd::nri
