// The exit statuses of xschedctl and how a gRPC status becomes one. They are a contract with scripts
// (docs/reference/xschedctl.md): a number never changes its meaning. Thread rule: pure functions.
#pragma once

#include <grpcpp/support/status_code_enum.h>

#include <string_view>

namespace xschedd::ctl {

enum class ExitCode : int {
  kOk = 0,
  kFound = 1,         // doctor, config, acceptance: found an error
  kUsage = 2,         // wrong command line, or a value that the daemon calls invalid
  kNoDaemon = 3,      // no daemon listens, or it went away during the call
  kPermission = 4,    // the admin socket, or the daemon, does not let this user in
  kNoClient = 5,      // nothing fits the selector
  kRefused = 6,       // the daemon answered, and the answer is no; or an error of its own
  kTimeout = 7,       // the daemon accepted the connection and did not answer in time
  kNoShim = 8,        // run: the shim library is not there
  kCannotExec = 126,  // run: the command is there and cannot be executed
  kNoCommand = 127,   // run: the command is not there
};

// UNAVAILABLE has two meanings, which only the socket can tell apart: a daemon that is draining (`still_listening`) and
// one that is gone.
ExitCode ExitCodeOf(grpc::StatusCode status, bool still_listening);

// The table of --help and of the manual page.
std::string_view ExitCodeHelp();

}  // namespace xschedd::ctl
