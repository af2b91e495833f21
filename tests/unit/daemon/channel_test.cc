// A client's shared memory, with too few descriptors for it.
#include "daemon/registry/channel.h"

#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"

using namespace xschedd;

TEST_CASE("a channel without three free descriptors fails with a reason") {
  for (const rlim_t more : {0u, 1u, 2u}) {
    test::FewDescriptors few(more);
    const auto channel = Channel::Make();
    few.End();
    REQUIRE(!channel);
    CHECK(channel.error().what.find("cannot make") == 0);
    CHECK(channel.error().Line().find("LimitNOFILE") != std::string::npos);
  }
  test::FewDescriptors enough(3);
  const auto channel = Channel::Make();
  enough.End();
  REQUIRE(channel);
  CHECK((*channel)->BoardFd() >= 0);
  (*channel)->ForgetDescriptors();
  CHECK((*channel)->BoardFd() < 0);
  CHECK((*channel)->LedgerFd() < 0);
  CHECK((*channel)->EventFd() >= 0);
}
