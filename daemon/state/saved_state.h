// The daemon's state as it is saved (state.proto), and the checks on what comes back: it was written by a daemon of any
// release. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/core.h"
#include "daemon/policy/types.h"
#include "daemon/registry/limits.h"
#include "daemon/state/state_file.h"
#include "state.pb.h"

namespace xschedd {

// The largest state that can come to be, for StateFile::kCapacity: each number counts as 12 bytes, each text with its
// length. A test saves the largest client that a session can make.
inline constexpr std::size_t kMostOfNumber = 12;
inline constexpr std::size_t kMostSavedQueues = 4;  // of a client: those with the shortest deadlines
inline constexpr std::size_t kMostSavedOfQueue = 4 * kMostOfNumber;
inline constexpr std::size_t kMostSavedOfDevice = 3 + 2 * 6 + (17 + 2) + (kMostOfName + 2) + (kMostOfVendor + 2);
// Without its devices.
inline constexpr std::size_t kMostSavedOfClient =
    30 * kMostOfNumber + (kMostOfGroup + 4) + 3 * (kMostOfWord + 3) + kMostSavedQueues * kMostSavedOfQueue;
inline constexpr std::size_t kMostSavedOfPartition = (17 + 5) + (kMostOfName + 2);  // each at an address of its own
inline constexpr std::size_t kMostSavedOfHead = 4'096;
inline constexpr std::size_t kMostSaved = kMostClients * kMostSavedOfClient + kMostAttachments * kMostSavedOfDevice +
                                          kMostPartitions * kMostSavedOfPartition + kMostSavedOfHead;
static_assert(kMostSaved <= StateFile::kCapacity);

// `channel`: its number in the descriptor store.
state::Client ToSaved(const Client& client, std::optional<std::uint64_t> channel);
RestoredClient FromSaved(const state::Client& saved);

state::Policy ToSaved(const policy::Settings& settings);
// None: a policy that this release does not have. Numbers out of range are as by default.
std::optional<policy::Settings> FromSaved(const state::Policy& saved);

// What is in force after a restart: a setting that was not as in the files then stays, unless they say something else
// now than then. `then` and `now`: what they say.
policy::Settings AfterRestart(const policy::Settings& live, const policy::Settings& then, const policy::Settings& now);

// All of the core but its clients and partitions.
void FillSaved(const Core& core, state::SavedState& saved);
void FillPartitions(const Partitions& partitions, state::SavedState& saved);
Partitions PartitionsFrom(const state::SavedState& saved);

}  // namespace xschedd
