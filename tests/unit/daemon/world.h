// A scheduler with real boards and ledgers, a clock that the test sets, and no processes. Thread rule: the test's
// thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "daemon/scheduler/scheduler.h"
#include "tests/catch.h"

namespace xschedd::test {

inline std::uint64_t fake_now = 0;
inline std::uint64_t FakeClock() {
  return fake_now;
}

// A client's two ends: the daemon's record and channel, and the shim's reader and writer.
struct Peer {
  std::unique_ptr<Channel> channel;
  Mapping board_mapping;
  Mapping ledger_mapping;
  std::unique_ptr<BoardReader> board;
  std::unique_ptr<LedgerWriter> ledger;
  Client* client = nullptr;

  bool Held(std::uint32_t slot) const { return (board->Word(slot) & abi::kHeld) != 0; }
  bool Tracked(std::uint32_t slot) const { return (board->Word(slot) & abi::kTracked) != 0; }
};

class World {
 public:
  World() : scheduler(registry, events, &FakeClock) {
    fake_now = 1'000 * policy::kNsPerS;
    policy::Settings settings;
    settings.linger_us = 0;
    scheduler.SetSettings(settings);
  }

  std::string vendor = "amd";  // of devices that clients bring
  bool is_under_mps = false;   // the clients
  // Connects a client that is on one device, in slot 0.
  std::unique_ptr<Peer> Connect(std::uint64_t pid, int priority, const std::string& address = "0000:c1:00.0",
                                const abi::Layout& layout = abi::Newest(), std::uint32_t owner = 0,
                                const std::string& place = {}) {
    auto peer = std::make_unique<Peer>();
    peer->channel = Channel::Make(layout).value();
    peer->board_mapping = MapSharedMemory(peer->channel->BoardFd(), layout.board_bytes, Access::kReadOnly).value();
    peer->ledger_mapping = MapSharedMemory(peer->channel->LedgerFd(), layout.ledger_bytes, Access::kReadWrite).value();
    const auto* board = static_cast<const abi::Board*>(peer->board_mapping.Address());
    peer->board = std::make_unique<BoardReader>(BoardReader::Open(board, layout).value());
    peer->ledger.reset(LedgerWriter::Open(static_cast<abi::Ledger*>(peer->ledger_mapping.Address()), board,
                                          peer->channel->EventFd(), layout)
                           .value());
    NewClient fresh;
    fresh.identity.pid = pid;
    fresh.identity.owner = owner;
    fresh.identity.place = place;
    fresh.channel = peer->channel.get();
    peer->client = &registry.Add(std::move(fresh), fake_now);
    peer->client->effective.priority = priority;
    const auto attachment = registry.Attach(*peer->client, {.slot = 0,
                                                            .pci_address = address,
                                                            .name = "GPU",
                                                            .vendor = vendor,
                                                            .compute_units = 4,
                                                            .uuid = {},
                                                            .is_under_mps = is_under_mps});
    REQUIRE(attachment);
    (*attachment)->history.Begin(fake_now);
    scheduler.Changed(*peer->client);
    scheduler.Decide();
    return peer;
  }

  void Report(Peer& peer, bool busy) {
    peer.ledger->Report(0, busy ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, fake_now);
    CHECK(scheduler.ReadActivity(*peer.client));
    scheduler.Decide();
  }

  // Reports the same level with another deadline.
  void ReportDeadline(Peer& peer, std::uint64_t deadline_ns) {
    peer.ledger->Device(0).deadline_ns = deadline_ns;
    Report(peer, true);
  }

  void Disconnect(Peer& peer) {
    scheduler.Changed(*peer.client);
    scheduler.Remove(*peer.client);
    registry.Remove(peer.client->id);
    scheduler.Decide();
  }

  Registry registry;
  EventLog events;
  Scheduler scheduler;
};

}  // namespace xschedd::test
