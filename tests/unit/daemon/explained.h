// The answer of `explain` about a client in a test's world. Thread rule: the test's thread.
#pragma once

#include "daemon/scheduler/explain.h"
#include "tests/unit/daemon/world.h"

namespace xschedd::test {

inline Explanation Explain(const World& world, const Peer& peer, std::uint32_t seconds) {
  const Config config;
  return ExplainClient(*peer.client, seconds,
                       {world.registry, world.scheduler.Records().Histories(), config, fake_now});
}

}  // namespace xschedd::test
