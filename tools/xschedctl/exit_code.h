// The exit statuses of xschedctl and how a gRPC status becomes one. They are a contract with scripts
// (docs/reference/xschedctl.md): a number never changes its meaning. Thread rule: pure functions.
#pragma once

#include <grpcpp/support/status_code_enum.h>

#include <string_view>

namespace xschedd::ctl {

enum class ExitCode : int {
  kOk = 0,
  kFound = 1,         // doctor, config, acceptance: found an error
  kUsage = 2,         // wrong command line, or a value that the daemon rejects as invalid
  kNoDaemon = 3,      // no daemon listens, or it went away during the call
  kPermission = 4,    // the admin socket, or the daemon, refuses this user
  kNoClient = 5,      // no client matches the selector
  kRefused = 6,       // the daemon refused, or failed
  kTimeout = 7,       // the daemon accepted the connection and did not answer in time
  kNoShim = 8,        // run: the shim library was not found
  kCannotExec = 126,  // run: the command exists and cannot be executed
  kNoCommand = 127,   // run: the command was not found
};

// UNAVAILABLE has two meanings, which only the socket distinguishes: a daemon that refuses (`still_listening`) and one
// that is gone.
ExitCode ExitCodeOf(grpc::StatusCode status, bool still_listening);

// The table of --help and of the manual page.
std::string_view ExitCodeHelp();

}  // namespace xschedd::ctl
