#include "daemon/config/listen_address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include "common/parse_number.h"

namespace xschedd {
namespace {

constexpr std::string_view kUnix = "unix:";

tl::unexpected<Error> Wrong(std::string_view text, const std::string& why) {
  return Fail("\"" + std::string(text) + "\" is not an address to listen on: " + why,
              "write \"127.0.0.1:19464\", \"[::1]:19464\" or \"unix:/run/xschedd/metrics.sock\"");
}

}  // namespace

bool ListenAddress::IsLoopback() const {
  if (kind == Kind::kUnix) return true;
  if (kind == Kind::kIpv6) return host == "::1";
  return host.starts_with("127.");
}

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  ListenAddress address;
  if (text.starts_with(kUnix)) {
    address.kind = ListenAddress::Kind::kUnix;
    address.host = text.substr(kUnix.size());
    if (!address.host.starts_with("/")) return Wrong(text, "the path is not absolute");
    if (address.host.find('\0') != std::string::npos) return Wrong(text, "the path has a NUL");
    if (address.host.size() >= sizeof(sockaddr_un::sun_path)) return Wrong(text, "the path is longer than 107 bytes");
    return address;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Wrong(text, "it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const auto number = ParseNumber<std::uint16_t>(port);
  if (!number) return Wrong(text, "its port is not a number from 0 to 65535");
  address.port = *number;
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  address.host = host;
  address.kind = in_brackets ? ListenAddress::Kind::kIpv6 : ListenAddress::Kind::kIpv4;
  in6_addr parsed{};  // large enough for both
  if (address.host.find('\0') != std::string::npos ||
      ::inet_pton(in_brackets ? AF_INET6 : AF_INET, address.host.c_str(), &parsed) != 1) {
    return Wrong(text, "it has no numeric IP address");
  }
  return address;
}

}  // namespace xschedd
