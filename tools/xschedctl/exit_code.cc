#include "tools/xschedctl/exit_code.h"

#include <fmt/format.h>

#include <string>

#include "tools/xschedctl/exit_code_table.h"

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

std::span<const ExitCodeText> ExitCodes() {
  static constexpr ExitCodeText kTexts[] = {
      {ExitCode::kOk, "done"},
      {ExitCode::kFound, "doctor, config, acceptance: found an error"},
      {ExitCode::kUsage, "bad usage, or a value out of range (priorities go from -100 to 100)"},
      {ExitCode::kNoDaemon, "no daemon is running"},
      {ExitCode::kPermission, "permission denied"},
      {ExitCode::kNoClient, "no client matches"},
      {ExitCode::kRefused, "the daemon refused, or failed; acceptance: no report could be started or written"},
      {ExitCode::kTimeout, "the daemon did not answer in time"},
      {ExitCode::kNoShim, "run: the shim library was not found"},
      {ExitCode::kCannotExec, "run: the command cannot be executed"},
      {ExitCode::kNoCommand, "run: the command was not found"},
  };
  return kTexts;
}

std::string_view ExitCodeHelp() {
  static const std::string help = [] {
    std::string lines = "Exit status:\n";
    for (const auto& [code, text] : ExitCodes())
      lines += fmt::format("  {:<3}  {}\n", static_cast<int>(code), text);
    return lines + "  run otherwise exits as its command does.";
  }();
  return help;
}

}  // namespace xschedd::ctl
