// Writes a file whole or not at all: beside its place under another name, readable by its owner only, then renamed.
// What is there and no regular file (a pipe, a device) is written as it is. Thread rule: any thread.
#pragma once

#include <string>

#include "common/result.h"

namespace xschedd::ctl {

Result<void> WriteWhole(const std::string& path, const std::string& bytes);

}  // namespace xschedd::ctl
