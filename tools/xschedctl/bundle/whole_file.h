// Writes a file completely or not at all: to a temporary file beside it, readable by its owner only, which is then
// renamed. An existing path that is not a regular file (a pipe, a device) is written in place. Thread rule: any thread.
#pragma once

#include <string>

#include "common/result.h"

namespace xschedd::ctl {

Result<void> WriteWhole(const std::string& path, const std::string& bytes);

}  // namespace xschedd::ctl
