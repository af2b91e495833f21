// A listening address from the configuration: an IP address with a port, or a Unix socket. Names are not looked up.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd {

inline constexpr std::string_view kDefaultMetricsAddress = "127.0.0.1:19464";

struct ListenAddress {
  enum class Kind { kUnix, kIpv4, kIpv6 };
  Kind kind = Kind::kIpv4;
  std::string host;  // without brackets; for a Unix socket its path
  std::uint16_t port = 0;

  bool IsLoopback() const;  // true for a Unix socket as well: other machines cannot reach it
};

// "127.0.0.1:19464", "[::1]:19464", "unix:/run/xschedd/metrics.sock". Port 0: any free port.
Result<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace xschedd
