#include "common/runtime_dir.h"

#include <cstdlib>

namespace xschedd {

std::string RuntimeDir(std::string_view explicit_dir) {
  if (!explicit_dir.empty()) return std::string(explicit_dir);
  // secure_getenv: the caller of a set-uid program must not lead it to a socket of his own.
  const char* from_environment = secure_getenv(kRuntimeDirVariable);
  if (from_environment != nullptr && *from_environment != '\0') return from_environment;
  return kDefaultRuntimeDir;
}

std::string ClientSocketPath(const std::string& runtime_dir) {
  return runtime_dir + "/" + kClientSocketName;
}
std::string ClientFolder(const std::string& runtime_dir) {
  return runtime_dir + "/" + kClientFolderName;
}
std::string AdminSocketPath(const std::string& runtime_dir) {
  return runtime_dir + "/" + kAdminSocketName;
}

}  // namespace xschedd
