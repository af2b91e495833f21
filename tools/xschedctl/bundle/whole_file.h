// Writes a file completely or not at all: to a temporary file beside it, which is then renamed. Thread rule: any
// thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd::ctl {

// The new file has this mode, and is on the disk when this returns. Returns 0 or errno; after an error the old file is
// as it was.
int ReplaceFile(const std::string& path, std::string_view bytes, mode_t mode);

// The same for a file that a user named, readable by its owner only. What is not a regular file (a pipe, a device) is
// written in place.
Result<void> WriteWhole(const std::string& path, const std::string& bytes);

}  // namespace xschedd::ctl
