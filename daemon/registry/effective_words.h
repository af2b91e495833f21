// Explains, for people, why a client does not get what it asked for. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/config/config.h"
#include "daemon/registry/registry.h"

namespace xschedd {

// "administrator"
std::string_view SourceText(PrioritySource source);
// Whose ceiling it is; if none is configured, also who can raise above it.
std::string CeilingText(std::uint32_t uid, bool is_configured);
// Whose ceiling limits the client's priority, or weight, if that is `effective`.
std::string PriorityCeilingText(const Client& client, const Effective& effective, const Config& config);
std::string WeightCeilingText(const Client& client, const Effective& effective, const Config& config);
// Why a hint is not in effect. Empty: it is.
std::string HintNote(const Client& client, const Config& config);

}  // namespace xschedd
