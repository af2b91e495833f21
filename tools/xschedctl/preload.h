// What `run` puts into its command's environment: where the shim is, and LD_PRELOAD with it in front.
// Thread rule: pure functions, but for FindShim, which looks at files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace xschedd::ctl {

inline constexpr char kShimName[] = "libxschedd-shim.so";
inline constexpr char kShimVariable[] = "XSCHEDD_SHIM";

// The value for LD_PRELOAD: the shim before what is there already, which stays in its order. A shim that is there
// already is not named twice. Fails on a path with a blank or a colon, which the dynamic linker takes for two paths.
Result<std::string> ComposePreload(std::string_view shim, std::string_view existing);

// Where the shim may lie beside the program `exe` (an absolute path) or under `library_dir`, best first: the build
// tree of this very program goes before an installed one, so that nobody tests yesterday's library, and what it was
// installed with before what the build was configured for.
std::vector<std::string> ShimCandidates(std::string_view exe, std::string_view library_dir);

// `explicit_path` (from --shim or $XSCHEDD_SHIM) must exist if it is not empty; else the first candidate that does.
Result<std::string> FindShim(const std::string& explicit_path, const std::vector<std::string>& candidates);

}  // namespace xschedd::ctl
