// What the importers of engines' records have in common. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/bench/fleet/trace.h"

namespace xschedd::fleet {

// "2026-11-25T08:30:00", or with a Z behind it: seconds since 1970 as if it were UTC. Nothing for anything else.
std::optional<std::int64_t> ReadTime(const std::string& text);

// The space's index; a new one has what import.h says.
std::uint32_t ImportedSpace(const std::string& name, Trace& trace);

inline constexpr const char* kImportedPattern = "train";

}  // namespace xschedd::fleet
