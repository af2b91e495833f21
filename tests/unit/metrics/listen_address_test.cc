// Notations of listening addresses.
#include "daemon/config/listen_address.h"

#include "tests/catch.h"

using namespace xschedd;
using Kind = ListenAddress::Kind;

TEST_CASE("valid addresses") {
  const auto four = ParseListenAddress(kDefaultMetricsAddress);
  REQUIRE(four);
  CHECK((four->kind == Kind::kIpv4 && four->host == "127.0.0.1" && four->port == 19464));
  CHECK(four->IsLoopback());
  const auto six = ParseListenAddress("[::1]:0");
  REQUIRE(six);
  CHECK((six->kind == Kind::kIpv6 && six->host == "::1" && six->port == 0));
  CHECK(six->IsLoopback());
  const auto file = ParseListenAddress("unix:/run/xschedd/metrics.sock");
  REQUIRE(file);
  CHECK((file->kind == Kind::kUnix && file->host == "/run/xschedd/metrics.sock"));
  CHECK(file->IsLoopback());
  CHECK(!ParseListenAddress("0.0.0.0:65535")->IsLoopback());
  CHECK(!ParseListenAddress("[::]:1")->IsLoopback());
}

TEST_CASE("invalid addresses, with a cause and a remedy") {
  using namespace std::string_literals;
  for (const std::string& wrong :
       {""s, "localhost:19464"s, ":19464"s, "127.0.0.1"s, "127.0.0.1:"s, "127.0.0.1:-1"s, "127.0.0.1:65536"s,
        "127.0.0.1:80x"s, "127.0.0.1: 80"s, "::1:19464"s, "[127.0.0.1]:1"s, "[]:1"s, "[::1:1"s, "256.0.0.1:1"s,
        "unix:"s, "unix:relative"s, "unix:/"s + std::string(107, 'x'), "unix:/a\0b"s, "127.0.0.1\0:80"s}) {
    const auto address = ParseListenAddress(wrong);
    CAPTURE(wrong);
    REQUIRE(!address);
    CHECK(!address.error().what.empty());
    CHECK(!address.error().remedy.empty());
  }
}
