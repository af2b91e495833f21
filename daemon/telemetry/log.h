// Where the daemon's log goes: the journal when stderr is the journal, else stderr. One line an event, "what
// key=value". What gRPC and protobuf have to say goes there, too, few lines a second.
//
// A thread of its own writes the lines, so that a journal that stands still stops nobody: kWaitingLines wait for it,
// then the oldest are lost, and counted, and the next line that is written is preceded by one that says how many.
// Thread rule: StartLog and EndLog from main; logging itself (spdlog) from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd {

inline constexpr std::size_t kWaitingLines = 4'096;

// `level`: trace, debug, info, warning, error, off. Fails on any other.
Result<void> StartLog(const std::string& level);
// Returns when all lines are written; what is logged afterwards is lost.
void EndLog();
// How many lines were lost because nobody read them. Thread rule: any thread.
std::uint64_t LogLinesLost();
// A last line, from a place where nothing else works: to standard error, unless that would have to be waited for.
void SayLast(std::string_view line);

// How many lines of libraries were not logged because there were too many. Thread rule: any thread.
std::uint64_t LibraryLinesLeftOut();

}  // namespace xschedd
