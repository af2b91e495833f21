// The daemon's log: to the journal if stderr is the journal, else to stderr. One line per event, "what key=value".
// Messages of gRPC and protobuf go there too, a few lines a second.
//
// A thread of its own writes the lines, so that a stalled journal blocks nobody. Up to kWaitingLines wait; beyond that
// the oldest are lost and counted, and the next line written is preceded by one that says how many. Thread rule:
// StartLog and EndLog from main; logging itself (spdlog) from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd {

inline constexpr std::size_t kWaitingLines = 2'048;

// `level`: trace, debug, info, warning, error or off; fails on any other.
Result<void> StartLog(const std::string& level);
// Returns when all lines are written; later lines are lost.
void EndLog();
// Lines lost because nobody read them. Thread rule: any thread.
std::uint64_t LogLinesLost();
// Writes a line to stderr when nothing else works any more; drops it rather than block.
void WriteLastLine(std::string_view line);

// Lines of libraries dropped because there were too many. Thread rule: any thread.
std::uint64_t LibraryLinesLeftOut();

}  // namespace xschedd
