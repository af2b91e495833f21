// Parts of a connection table for fuzz targets: memory for each shim, and quotas that are reached only if the target
// limits them. Thread rule: the target's thread.
#pragma once

#include "daemon/connections/connections.h"

namespace xschedd::fuzz {

inline Result<void> Equip(Connection& connection, const abi::Layout& layout) {
  auto channel = Channel::Make(layout);
  if (!channel) return tl::unexpected(channel.error());
  connection.channel = std::move(*channel);
  return {};
}

// At most this many connections of any uid, also of root.
inline Quota ConnectionsAtMost(std::uint32_t number) {
  Quota quota;
  quota.connections_per_uid = number;
  quota.root_times = 1;
  return quota;
}

}  // namespace xschedd::fuzz
