// Users by name or number, for the configuration and the command line. Thread rule: one thread (getpwnam); may block,
// since the system's user database may be remote.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"

namespace xschedd {

// "alice" or "1000".
Result<std::uint32_t> UidOf(const std::string& user);

}  // namespace xschedd
