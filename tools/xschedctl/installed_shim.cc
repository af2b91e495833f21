#include "tools/xschedctl/installed_shim.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "tools/xschedctl/preload.h"

namespace xschedd::ctl {
std::string OwnPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

Result<std::string> InstalledShim(const std::string& given) {
  const char* const from_environment = secure_getenv(kShimVariable);
  const std::string explicit_shim = !given.empty() ? given : (from_environment != nullptr ? from_environment : "");
  return FindShim(explicit_shim, ShimCandidates(OwnPath(), XSCHEDD_LIBRARY_DIR));
}

}  // namespace xschedd::ctl
