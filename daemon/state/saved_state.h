// Converts the daemon's state to and from what is saved (state.proto). What comes back is checked, since a daemon of
// any release may have written it. Thread rule: the daemon's one thread.
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

// The largest possible state, for StateFile::kCapacity: a number counts as 12 bytes, a text as its maximum length and a
// few bytes. A test saves the largest client that a session can make.
inline constexpr std::size_t kSavedNumberBytes = 12;
inline constexpr std::size_t kMaxSavedQueues = 4;  // per client: those with the shortest deadlines
inline constexpr std::size_t kMaxSavedQueueBytes = 4 * kSavedNumberBytes;
inline constexpr std::size_t kMaxSavedDeviceBytes = 3 + 2 * 6 + (17 + 2) + (kMaxNameBytes + 2) + (kMaxVendorBytes + 2);
// Without its devices.
inline constexpr std::size_t kMaxSavedClientBytes =
    32 * kSavedNumberBytes + (kMaxGroupNameBytes + 4) + 4 * (kMaxWordBytes + 3) + kMaxSavedQueues * kMaxSavedQueueBytes;
// As if each had an address of its own.
inline constexpr std::size_t kMaxSavedPartitionBytes = (17 + 5) + (kMaxNameBytes + 2);
inline constexpr std::size_t kMaxSavedHeadBytes = 4'096;
inline constexpr std::size_t kMaxSavedLabelsBytes = kMaxLabelBytes + kMaxLabels * 10;
inline constexpr std::size_t kMaxSavedUsageBytes = 7 * kSavedNumberBytes + 3;
inline constexpr std::size_t kMaxSavedClaimBytes = 11 * kSavedNumberBytes + (kMaxClaimNameBytes + 3) +
                                                   (kMaxClaimCgroupBytes + 3) + (kMaxGroupNameBytes + 3) +
                                                   kMaxSavedLabelsBytes + kMaxSavedUsageBytes + 10;
inline constexpr std::size_t kMaxSavedEndedClaimBytes = 3 * kSavedNumberBytes + (kMaxClaimNameBytes + 3) +
                                                        (kMaxEndReasonBytes + 3) + kMaxSavedLabelsBytes +
                                                        kMaxSavedUsageBytes;
inline constexpr std::size_t kMaxSavedBytes =
    kMaxClients * kMaxSavedClientBytes + kMaxAttachments * kMaxSavedDeviceBytes +
    kMaxPartitions * kMaxSavedPartitionBytes + kMaxClaims * kMaxSavedClaimBytes +
    kMaxEndedClaims * kMaxSavedEndedClaimBytes + kMaxSavedHeadBytes;
static_assert(kMaxSavedBytes <= StateFile::kCapacity);

// `channel`: the id of its memory in the descriptor store.
state::Client ToSaved(const Client& client, std::optional<std::uint64_t> channel);
RestoredClient FromSaved(const state::Client& saved);

state::Claim ToSaved(const Claim& claim);
Claim FromSaved(const state::Claim& saved);
state::ClaimUsage ToSaved(const ClaimAccount& account);
// Without its claim.
ClaimAccount FromSaved(const state::ClaimUsage& saved);
state::EndedClaim ToSavedEnded(const ClaimAccount& account);
// None: no daemon writes this.
std::optional<ClaimAccount> FromSaved(const state::EndedClaim& saved);
// Adds the claim with this id and what its clients have used, as an ended one if it has ended; nothing if it is
// forgotten.
void FillClaimPart(const Core& core, std::uint64_t claim, state::SavedState& saved);

state::Policy ToSaved(const policy::Settings& settings);
// None: this release does not have the policy. A value out of range becomes the default.
std::optional<policy::Settings> FromSaved(const state::Policy& saved);

// The policy after a restart: a setting keeps its live value, unless the files have changed it since. `then` and `now`:
// the files' values before and after the restart.
policy::Settings AfterRestart(const policy::Settings& live, const policy::Settings& then, const policy::Settings& now);

// Everything but clients, claims and partitions.
void FillSaved(const Core& core, state::SavedState& saved);
void FillPartitions(const Partitions& partitions, state::SavedState& saved);
Partitions PartitionsFrom(const state::SavedState& saved);

}  // namespace xschedd
