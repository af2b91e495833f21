// Finds the shim, and composes the LD_PRELOAD that `run` sets for its command. Thread rule: pure functions, but for
// OwnPath and FindShim, which look at files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace xschedd::ctl {

inline constexpr char kShimName[] = "libxschedd-shim.so";
inline constexpr char kShimVariable[] = "XSCHEDD_SHIM";

// This program's file; empty if /proc is not mounted.
std::string OwnPath();

// The value for LD_PRELOAD: the shim before the existing entries, which keep their order. A shim that is there already
// is not named twice. Fails on a path with a blank or a colon, which the dynamic linker takes for two paths.
Result<std::string> ComposePreload(std::string_view shim, std::string_view existing);

// Where the shim may be, best first: in the build tree of the program `exe` (an absolute path), so that no test uses an
// older installed one; where `exe` was installed; under `library_dir`, for which the build was configured.
std::vector<std::string> ShimCandidates(std::string_view exe, std::string_view library_dir);

// `explicit_path` (from --shim or $XSCHEDD_SHIM) must exist if it is not empty; else the first candidate that does.
Result<std::string> FindShim(const std::string& explicit_path, const std::vector<std::string>& candidates);

}  // namespace xschedd::ctl
