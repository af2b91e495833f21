// The connection to the daemon: by admin.sock where the caller may open it, else by client.sock, which serves a user's
// own clients (docs/explanation/security-model.md). One connect(2) tells apart why there is no daemon (gRPC would
// report all of them alike, after waiting); the connected socket is then handed to gRPC. Thread rule: one user at a
// time.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "admin.grpc.pb.h"
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

class AdminClient {
 public:
  static Outcome<AdminClient> Connect(const std::string& runtime_dir);
  // By client.sock, whatever the caller may open: as the caller's programs do.
  static Outcome<AdminClient> ConnectAsUser(const std::string& runtime_dir);

  // Whether it came by admin.sock.
  bool IsAdmin() const { return why_not_admin_.empty(); }

  v1::Admin::Stub& stub() { return *stub_; }

  // One unary call: `(client.stub().*method)(context, request, &answer)` with the deadline of every call. Warns on
  // standard error of a change that is in force and that a restart of the daemon would lose.
  template <typename Request, typename Answer>
  Outcome<Answer> Call(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&, Answer*),
                       const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    Answer answer;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &answer);
    if (!status.ok()) return tl::unexpected<Failure>(Explain(status));
    if constexpr (requires { answer.not_saved(); }) WarnIfNotSaved(answer.not_saved());
    return answer;
  }

  // What a status means to the user.
  Failure Explain(const grpc::Status& status) const;

 private:
  AdminClient(std::string socket_path, std::string why_not_admin, UniqueFd fd);
  static std::chrono::system_clock::time_point Deadline();
  static void WarnIfNotSaved(const std::string& why);

  std::string socket_path_;
  std::string why_not_admin_;  // empty: it is admin.sock
  std::unique_ptr<v1::Admin::Stub> stub_;
};

}  // namespace xschedd::ctl
