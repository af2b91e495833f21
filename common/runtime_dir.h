// Where the sockets are, by one rule for daemon, shim and xschedctl: an explicit folder, else $XSCHEDD_RUNTIME_DIR,
// else /run/xschedd. Thread rule: any thread; reads the environment.
//
// The clients' socket is in a folder of its own, which containers mount as their /run/xschedd: a socket that is made
// again appears there, and the administrators' socket does not. A link leads there from the path that clients open.
#pragma once

#include <string>
#include <string_view>

namespace xschedd {

inline constexpr char kDefaultRuntimeDir[] = "/run/xschedd";
inline constexpr char kRuntimeDirVariable[] = "XSCHEDD_RUNTIME_DIR";
inline constexpr char kClientFolderName[] = "client";
inline constexpr char kClientSocketName[] = "client.sock";  // any local user
inline constexpr char kClaimsFolderName[] = "claims";       // has a folder for each claim with a socket
inline constexpr char kAdminSocketName[] = "admin.sock";    // root and group xschedd

// `explicit_dir` empty: the environment's, else the default.
std::string RuntimeDir(std::string_view explicit_dir = {});
std::string ClientSocketPath(const std::string& runtime_dir);  // where clients connect
std::string ClientFolder(const std::string& runtime_dir);      // where the daemon makes that socket, by the same name
std::string AdminSocketPath(const std::string& runtime_dir);

}  // namespace xschedd
