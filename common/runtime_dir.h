// Where the sockets are. One rule for daemon, shim and xschedctl: an explicit folder, else $XSCHEDD_RUNTIME_DIR, else
// /run/xschedd. Thread rule: pure but for reading the environment.
//
// The clients' socket is in a folder of its own, which containers mount as their /run/xschedd: a new socket appears in
// it, and the administrators' socket does not. A link leads there from where clients look.
#pragma once

#include <string>
#include <string_view>

namespace xschedd {

inline constexpr char kDefaultRuntimeDir[] = "/run/xschedd";
inline constexpr char kRuntimeDirVariable[] = "XSCHEDD_RUNTIME_DIR";
inline constexpr char kClientFolderName[] = "client";
inline constexpr char kClientSocketName[] = "client.sock";  // any local user
inline constexpr char kClaimsFolderName[] = "claims";       // with a folder for each claim that has a socket
inline constexpr char kAdminSocketName[] = "admin.sock";    // root and group xschedd

// `explicit_dir` empty: take the environment, then the default.
std::string RuntimeDir(std::string_view explicit_dir = {});
std::string ClientSocketPath(const std::string& runtime_dir);  // where clients connect
std::string ClientFolder(const std::string& runtime_dir);      // where the daemon makes it, under the same name
std::string AdminSocketPath(const std::string& runtime_dir);

}  // namespace xschedd
