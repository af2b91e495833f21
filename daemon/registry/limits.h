// The most that the daemon keeps for all clients together. The limits for each user are configured ([quota]); these are
// fixed, because the size of the saved state follows from them (state/saved_state.h).
// Thread rule: constants.
#pragma once

#include <cstddef>

namespace xschedd {

// About as many as the unit's LimitNOFILE allows.
inline constexpr std::size_t kMaxClients = 8'192;
// One per client and device. No user gets more than half.
inline constexpr std::size_t kMaxAttachments = 65'536;
// Remembered names of partitions, and their PCI addresses.
inline constexpr std::size_t kMaxPartitions = 4'096;

// Bytes of text from clients; longer text is cut.
inline constexpr std::size_t kMaxGroupNameBytes = 256;  // a group's name
inline constexpr std::size_t kMaxWordBytes = 32;        // runtime, route, version
inline constexpr std::size_t kMaxNameBytes = 64;        // a device's name, a uuid
inline constexpr std::size_t kMaxVendorBytes = 16;

}  // namespace xschedd
