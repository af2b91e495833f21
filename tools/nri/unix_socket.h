// Connects to a Unix socket by its path, without waiting. Thread rule: pure system calls.
#pragma once

#include <string>

#include "common/result.h"
#include "common/unique_fd.h"

namespace xschedd::nri {

enum class UnixSocket { kBlocking, kNonBlocking };

// `mode`: of the connected socket.
Result<UniqueFd> ConnectTo(const std::string& path, UnixSocket mode);

}  // namespace xschedd::nri
