// How much there may be of what clients bring, of all users together. What each user may have of it is in the
// configuration ([quota]); these bounds are not, because the saved state is as large as they are (state/saved_state.h).
// Thread rule: constants.
#pragma once

#include <cstddef>

namespace xschedd {

// About as many as the unit's LimitNOFILE lasts for.
inline constexpr std::size_t kMaxClients = 8'192;
// One client on one device counts one. No user gets more than half of them.
inline constexpr std::size_t kMaxAttachments = 65'536;
// Names of partitions that are remembered, and the PCI addresses that these are of.
inline constexpr std::size_t kMaxPartitions = 4'096;

// Bytes of what clients say; what is longer is cut.
inline constexpr std::size_t kMaxGroupNameBytes = 256;  // a group's name
inline constexpr std::size_t kMaxWordBytes = 32;        // runtime, route, version
inline constexpr std::size_t kMaxNameBytes = 64;        // a device's name, a uuid
inline constexpr std::size_t kMaxVendorBytes = 16;

}  // namespace xschedd
