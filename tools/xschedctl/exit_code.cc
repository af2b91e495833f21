#include "tools/xschedctl/exit_code.h"

namespace xschedd::ctl {

ExitCode ExitCodeOf(grpc::StatusCode status, bool still_listening) {
  switch (status) {
    case grpc::StatusCode::OK:
      return ExitCode::kOk;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
      return ExitCode::kUsage;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return ExitCode::kPermission;
    case grpc::StatusCode::NOT_FOUND:
      return ExitCode::kNoClient;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ExitCode::kTimeout;
    case grpc::StatusCode::UNAVAILABLE:
      return still_listening ? ExitCode::kRefused : ExitCode::kNoDaemon;
    default:
      return ExitCode::kRefused;
  }
}

std::string_view ExitCodeHelp() {
  return "Exit status:\n"
         "  0    done\n"
         "  1    doctor: something is wrong\n"
         "  2    wrong usage, or a value out of range (priorities go from -100 to 100)\n"
         "  3    no daemon is running there\n"
         "  4    permission denied\n"
         "  5    no client fits\n"
         "  6    the daemon refused, or failed\n"
         "  7    the daemon did not answer in time\n"
         "  8    run: the shim library was not found\n"
         "  126  run: the command cannot be executed\n"
         "  127  run: the command was not found\n"
         "  run otherwise ends as its command does.";
}

}  // namespace xschedd::ctl
