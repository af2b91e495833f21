#include "tools/xschedctl/exit_code.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/catch.h"
#include "tools/xschedctl/exit_code_table.h"

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

TEST_CASE("UNAVAILABLE from a running daemon is a refusal, else there is no daemon") {
  CHECK(ExitCodeOf(grpc::StatusCode::UNAVAILABLE, true) == ExitCode::kRefused);
  CHECK(ExitCodeOf(grpc::StatusCode::UNAVAILABLE, false) == ExitCode::kNoDaemon);
}

TEST_CASE("the help names every exit code") {
  const std::string help(ExitCodeHelp());
  for (int number = 0; number < 256; ++number) {
    bool is_one = false;
    // No default, so that a new code is a compiler's warning, which is an error.
    switch (static_cast<ExitCode>(number)) {
      case ExitCode::kOk:
      case ExitCode::kFound:
      case ExitCode::kUsage:
      case ExitCode::kNoDaemon:
      case ExitCode::kPermission:
      case ExitCode::kNoClient:
      case ExitCode::kRefused:
      case ExitCode::kTimeout:
      case ExitCode::kNoShim:
      case ExitCode::kCannotExec:
      case ExitCode::kNoCommand:
        is_one = true;
    }
    CAPTURE(number);
    CHECK((help.find(fmt::format("\n  {:<5}", number)) != std::string::npos) == is_one);
    CHECK(std::any_of(ExitCodes().begin(), ExitCodes().end(),
                      [&](const ExitCodeText& one) { return static_cast<int>(one.code) == number; }) == is_one);
  }
}

}  // namespace xschedd::ctl
