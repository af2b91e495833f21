// The daemon's state as it is saved (state.proto), and the checks on what comes back: it was written by a daemon of any
// release. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/core.h"
#include "daemon/policy/types.h"
#include "state.pb.h"

namespace xschedd {

// `channel`: its number in the descriptor store.
state::Client ToSaved(const Client& client, std::optional<std::uint32_t> channel);
RestoredClient FromSaved(const state::Client& saved);

state::Policy ToSaved(const policy::Settings& settings);
// None: a policy that this release does not have. Numbers out of range are as by default.
std::optional<policy::Settings> FromSaved(const state::Policy& saved);

// All of the core but its clients.
void FillSaved(const Core& core, state::SavedState& saved);
Partitions PartitionsFrom(const state::SavedState& saved);

}  // namespace xschedd
