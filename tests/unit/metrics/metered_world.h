// A world (world.h) whose clients are metered. Thread rule: as the world.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/telemetry/meter.h"
#include "tests/unit/daemon/world.h"

namespace xschedd::test {

inline constexpr char kGpu[] = "0000:c1:00.0";

inline const ClassAccount* Find(const World& world, const std::string& device, const std::string& klass) {
  const Meter& meter = world.scheduler.Records().Metrics();
  for (const ClassAccount& account : meter.Accounts()) {
    if (account.device != kNoAccount && meter.Devices()[account.device].id == device &&
        meter.Classes()[account.klass] == klass) {
      return &account;
    }
  }
  return nullptr;
}

inline void CountAll(World& world) {
  Meter& meter = world.scheduler.Records().Metrics();
  meter.Begin();
  for (const auto& [id, client] : world.registry.Clients())
    meter.Count(*client, fake_now);
  meter.End();
}

inline std::unique_ptr<Peer> Connect(World& world, std::uint64_t pid, int priority, const std::string& address) {
  auto peer = world.Connect(pid, priority, address);
  world.scheduler.Records().Metrics().Attached(*peer->client->attachments.at(0), fake_now);
  return peer;
}

}  // namespace xschedd::test
