// Where the sockets are. One rule for daemon, shim and xschedctl: an explicit folder, else $XSCHEDD_RUNTIME_DIR, else
// /run/xschedd. Thread rule: pure but for reading the environment.
#pragma once

#include <string>
#include <string_view>

namespace xschedd {

inline constexpr char kDefaultRuntimeDir[] = "/run/xschedd";
inline constexpr char kRuntimeDirVariable[] = "XSCHEDD_RUNTIME_DIR";
inline constexpr char kClientSocketName[] = "client.sock";  // any local user
inline constexpr char kAdminSocketName[] = "admin.sock";    // root and group xschedd

// `explicit_dir` empty: take the environment, then the default.
std::string RuntimeDir(std::string_view explicit_dir = {});
std::string ClientSocketPath(const std::string& runtime_dir);
std::string AdminSocketPath(const std::string& runtime_dir);

}  // namespace xschedd
