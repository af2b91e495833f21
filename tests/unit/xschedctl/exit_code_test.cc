#include "tools/xschedctl/exit_code.h"

#include <fmt/format.h>

#include "tests/catch.h"

namespace xschedd::ctl {

TEST_CASE("every gRPC status has its exit code") {
  using grpc::StatusCode;
  CHECK(ExitCodeOf(StatusCode::OK, true) == ExitCode::kOk);
  CHECK(ExitCodeOf(StatusCode::INVALID_ARGUMENT, true) == ExitCode::kUsage);
  CHECK(ExitCodeOf(StatusCode::PERMISSION_DENIED, true) == ExitCode::kPermission);
  CHECK(ExitCodeOf(StatusCode::NOT_FOUND, true) == ExitCode::kNoClient);
  CHECK(ExitCodeOf(StatusCode::DEADLINE_EXCEEDED, true) == ExitCode::kTimeout);
  for (const auto status : {StatusCode::FAILED_PRECONDITION, StatusCode::RESOURCE_EXHAUSTED, StatusCode::INTERNAL,
                            StatusCode::UNIMPLEMENTED, StatusCode::UNKNOWN}) {
    CHECK(ExitCodeOf(status, true) == ExitCode::kRefused);
  }
}

TEST_CASE("a draining daemon refuses, a dead one is not there") {
  CHECK(ExitCodeOf(grpc::StatusCode::UNAVAILABLE, true) == ExitCode::kRefused);
  CHECK(ExitCodeOf(grpc::StatusCode::UNAVAILABLE, false) == ExitCode::kNoDaemon);
}

TEST_CASE("the help names every exit code") {
  const std::string help(ExitCodeHelp());
  for (const auto code :
       {ExitCode::kOk, ExitCode::kUsage, ExitCode::kNoDaemon, ExitCode::kPermission, ExitCode::kNoClient,
        ExitCode::kRefused, ExitCode::kTimeout, ExitCode::kNoShim, ExitCode::kCannotExec, ExitCode::kNoCommand}) {
    CHECK(help.find(fmt::format("\n  {:<5}", static_cast<int>(code))) != std::string::npos);
  }
}

}  // namespace xschedd::ctl
