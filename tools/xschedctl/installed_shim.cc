#include "tools/xschedctl/installed_shim.h"

#include <cstdlib>

#include "tools/xschedctl/preload.h"

namespace xschedd::ctl {

Result<std::string> InstalledShim(const std::string& given) {
  const char* const from_environment = secure_getenv(kShimVariable);
  const std::string explicit_shim = !given.empty() ? given : (from_environment != nullptr ? from_environment : "");
  return FindShim(explicit_shim, ShimCandidates(OwnPath(), XSCHEDD_LIBRARY_DIR));
}

}  // namespace xschedd::ctl
