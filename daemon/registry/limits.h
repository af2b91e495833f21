// The most that the daemon keeps for all clients together. The part of each user is configured ([quota]); these bounds
// are fixed, because they give the size of the saved state (state/saved_state.h).
// Thread rule: constants.
#pragma once

#include <cstddef>

namespace xschedd {

// About as many as the unit's LimitNOFILE allows.
inline constexpr std::size_t kMaxClients = 8'192;
// One per client and device. No user gets more than half.
inline constexpr std::size_t kMaxAttachments = 65'536;
// Names of partitions that are remembered, and the PCI addresses that these are of.
inline constexpr std::size_t kMaxPartitions = 4'096;

// Bytes of clients' texts; longer ones are cut.
inline constexpr std::size_t kMaxGroupNameBytes = 256;  // a group's name
inline constexpr std::size_t kMaxWordBytes = 32;        // runtime, route, version
inline constexpr std::size_t kMaxNameBytes = 64;        // a device's name, a uuid
inline constexpr std::size_t kMaxVendorBytes = 16;

}  // namespace xschedd
