// The scheduler with real boards and ledgers, a clock that the test turns, and no process.
#include "daemon/scheduler/scheduler.h"

#include <sys/mman.h>

#include <memory>

#include "daemon/scheduler/explain.h"
#include "daemon/scheduler/token_bucket.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

std::uint64_t fake_now = 0;
std::uint64_t FakeClock() {
  return fake_now;
}

// A client's two ends: the daemon's record and channel, the shim's reader and writer.
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

  std::unique_ptr<Peer> Connect(std::uint64_t pid, int priority) {
    auto peer = std::make_unique<Peer>();
    peer->channel = Channel::Make().value();
    peer->board_mapping = MapSharedMemory(peer->channel->BoardFd(), sizeof(abi::Board), Access::kReadOnly).value();
    peer->ledger_mapping = MapSharedMemory(peer->channel->LedgerFd(), sizeof(abi::Ledger), Access::kReadWrite).value();
    const auto* board = static_cast<const abi::Board*>(peer->board_mapping.Address());
    peer->board = std::make_unique<BoardReader>(BoardReader::Open(board).value());
    peer->ledger.reset(
        LedgerWriter::Open(static_cast<abi::Ledger*>(peer->ledger_mapping.Address()), board, peer->channel->EventFd())
            .value());
    NewClient fresh;
    fresh.identity.pid = pid;
    fresh.channel = peer->channel.get();
    peer->client = &registry.Add(std::move(fresh), fake_now);
    peer->client->effective.priority = priority;
    scheduler.Attached(**registry.Attach(*peer->client, {0, "0000:c1:00.0", "GPU", "amd", 4}));
    scheduler.Decide();
    return peer;
  }

  void Report(Peer& peer, bool busy) {
    peer.ledger->Report(0, busy ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, fake_now);
    CHECK(scheduler.Serve(*peer.client));
    scheduler.Decide();
  }

  void Disconnect(Peer& peer) {
    scheduler.Changed(*peer.client);
    scheduler.Leaving(*peer.client);
    registry.Remove(peer.client->id);
    scheduler.Decide();
  }

  Registry registry;
  EventLog events;
  Scheduler scheduler;
};

}  // namespace

TEST_CASE("gates follow transitions, and held time is the daemon's own") {
  World world;
  const auto high = world.Connect(1, 50);
  CHECK(!high->Tracked(0));
  CHECK(!world.scheduler.RenewLeases());  // nothing tracked: nothing to do
  const auto low = world.Connect(2, 0);
  CHECK(high->Tracked(0));
  CHECK(low->Tracked(0));
  CHECK(high->board->LeaseUntilNs() == fake_now + 100 * policy::kNsPerMs);

  world.Report(*low, true);
  CHECK(!low->Held(0));
  world.Report(*high, true);
  CHECK(low->Held(0));
  const Attachment& attachment = *low->client->attachments.at(0);
  CHECK(attachment.reason.Text() == "pid 1 (priority 50) is busy");
  fake_now += 3 * policy::kNsPerMs;
  CHECK(world.scheduler.HeldNs(attachment) == 3 * policy::kNsPerMs);
  world.Report(*high, false);
  CHECK(!low->Held(0));
  fake_now += 5 * policy::kNsPerMs;
  CHECK(world.scheduler.HeldNs(attachment) == 3 * policy::kNsPerMs);
  REQUIRE(low->client->held_log.Spans().size() == 1);

  // Held while idle is not held time.
  world.Report(*low, false);
  world.Report(*high, true);
  CHECK(low->Held(0));
  fake_now += policy::kNsPerS;
  CHECK(world.scheduler.HeldNs(attachment) == 3 * policy::kNsPerMs);

  const Explanation explanation = ExplainClient(*low->client, world.scheduler.Settings(), 0, fake_now);
  CHECK(explanation.held_ns == 3 * policy::kNsPerMs);
  CHECK(explanation.summary.find("held for 3.0 ms") != std::string::npos);
  CHECK(explanation.remedy.find("priority of 50") != std::string::npos);
  CHECK(ExplainClient(*low->client, world.scheduler.Settings(), 1, fake_now).held_ns == 0);
}

TEST_CASE("gates that do not change are not written") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  world.Report(*high, true);
  const std::uint64_t writes = world.scheduler.Counts().gate_writes;
  const std::uint32_t word = low->board->Word(0);
  world.scheduler.Changed(*low->client);
  world.scheduler.Decide();
  CHECK(world.scheduler.Counts().gate_writes == writes);
  CHECK(low->board->Word(0) == word);
}

TEST_CASE("tracking ends with its cause, and begins with what the ledger says") {
  World world;
  const auto high = world.Connect(1, 50);
  {
    const auto low = world.Connect(2, 0);
    world.Report(*high, true);
    world.Disconnect(*low);
    CHECK(low->board->Word(0) >> abi::kGenerationShift != 0);
    CHECK(!low->Held(0));
  }
  CHECK(!high->Tracked(0));
  CHECK(!world.scheduler.RenewLeases());
  // The level is still busy: a newcomer of lower priority is held from the start.
  const auto late = world.Connect(3, 0);
  CHECK(high->Tracked(0));
  CHECK(late->Held(0));
}

TEST_CASE("time alone opens a gate when the guard's turn has come") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  world.Report(*low, true);
  world.Report(*high, true);
  const std::uint64_t next = world.scheduler.NextLookNs();
  CHECK(next == fake_now + 990 * policy::kNsPerMs);
  fake_now = next;
  world.scheduler.Decide();
  CHECK(!low->Held(0));
  fake_now = world.scheduler.NextLookNs();
  world.scheduler.Decide();
  CHECK(low->Held(0));
}

TEST_CASE("opening all gates is for good") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  world.Report(*high, true);
  CHECK(low->Held(0));
  world.scheduler.OpenAll();
  CHECK(!low->Held(0));
  CHECK(!high->Tracked(0));
  world.scheduler.Changed(*high->client);
  world.scheduler.Decide();
  CHECK(!low->Tracked(0));
  CHECK(world.scheduler.NextLookNs() == policy::kNever);
}

TEST_CASE("a client that floods its ring is served in portions") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  for (int i = 0; i < 3'000; ++i)
    low->ledger->Report(0, i % 2 == 0 ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, 0);
  world.scheduler.Serve(*low->client);
  world.scheduler.Decide();
  CHECK(!world.registry.Devices().begin()->second->attachments[1]->busy);  // the level, not the records, is the truth
  CHECK(world.scheduler.Counts().decisions < 10);
}

TEST_CASE("the event memory is bounded") {
  EventLog log;
  for (std::size_t i = 0; i < EventLog::kRemembered + 10; ++i) {
    Event event;
    event.time_ns = i;
    log.Add(event);
  }
  CHECK(log.Remembered().size() == EventLog::kRemembered);
  CHECK(log.Remembered().front().time_ns == 10);
}

TEST_CASE("held spans are bounded, and what is forgotten is not claimed to be observed") {
  HeldLog log;
  for (std::size_t i = 0; i < HeldLog::kSpans + 1; ++i)
    log.Add({i * 10, i * 10 + 5, nullptr, {}});
  CHECK(log.Spans().size() == HeldLog::kSpans);
  CHECK(log.ForgottenUntilNs() == 5);
}

TEST_CASE("a token bucket gives its burst, then its rate") {
  TokenBucket bucket(10, 2);
  CHECK(bucket.Take(1'000'000'000));
  CHECK(bucket.Take(1'000'000'000));
  CHECK(!bucket.Take(1'000'000'000));
  CHECK(!bucket.Take(1'050'000'000));
  CHECK(bucket.Take(1'110'000'000));
}
