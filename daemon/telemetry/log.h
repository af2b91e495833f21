// Where the daemon's log goes: the journal when stderr is the journal, else stderr. One line an event, "what
// key=value". What gRPC and protobuf have to say goes there, too, few lines a second. Thread rule: StartLog once, from
// main; logging itself (spdlog) from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"

namespace xschedd {

// `level`: trace, debug, info, warning, error, off. Fails on any other.
Result<void> StartLog(const std::string& level);

// How many lines of libraries were not logged because there were too many. Thread rule: any thread.
std::uint64_t LibraryLinesLeftOut();

}  // namespace xschedd
