// Limits of device memory: where they come from, what they are on a client's board, and what no client can make of
// them.
#include "daemon/scheduler/memory_watch.h"

#include <boost/asio/io_context.hpp>

#include "common/memory_limit.h"
#include "daemon/core.h"
#include "daemon/registry/effective.h"
#include "daemon/scheduler/memory_words.h"
#include "tests/unit/daemon/believing.h"
#include "tests/unit/daemon/claims.h"
#include "tests/unit/daemon/world.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr char kGpu[] = "0000:c1:00.0";
constexpr char kOtherGpu[] = "0000:c2:00.0";

struct MemoryWorld : World {
  MemoryWorld()
      : watch(registry, scheduler.Records().Metrics().Claims(),
              [this](const Attachment& attachment, std::uint64_t count) {
                told.emplace_back(attachment.client->identity.pid, count);
              }) {}

  ClaimPtr MakeLimited(std::uint64_t id, std::optional<std::uint64_t> limit) {
    Claim claim = MakeClaim("c" + std::to_string(id), "/a");
    claim.id = id;
    claim.memory_limit = limit;
    auto made = std::make_shared<const Claim>(std::move(claim));
    scheduler.Records().Metrics().Claims().Put(made, 0);
    return made;
  }
  std::unique_ptr<Peer> Limited(std::uint64_t pid, const ClaimPtr& claim, const std::string& address = kGpu,
                                const abi::Layout& layout = abi::Newest()) {
    auto peer = Connect(pid, 0, address, layout);
    SetClaim(*peer->client, claim);
    peer->client->effective = EffectiveOf(*peer->client, config);
    watch.Begin(At(*peer));
    return peer;
  }
  static Attachment& At(Peer& peer) { return *peer.client->attachments.at(0); }
  void Look() { watch.LookAtAll(fake_now); }

  Config config;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;  // pid and count
  MemoryWatch watch;
};

}  // namespace

TEST_CASE("a limit of memory is the administrator's, else the claim's, else that of the first rule that fits") {
  const struct {
    std::optional<std::uint64_t> admin, claim, rule;
    std::uint64_t limit;
    PrioritySource source;
  } kCases[] = {
      {{}, {}, {}, 0, PrioritySource::kDefault},
      {{}, {}, 3 * kGiB, 3 * kGiB, PrioritySource::kRule},
      {{}, 2 * kGiB, 3 * kGiB, 2 * kGiB, PrioritySource::kClaim},
      {{}, 4 * kGiB, 3 * kGiB, 4 * kGiB, PrioritySource::kClaim},  // not the smaller one
      {5 * kGiB, 2 * kGiB, 3 * kGiB, 5 * kGiB, PrioritySource::kAdmin},
      {5 * kGiB, {}, {}, 5 * kGiB, PrioritySource::kAdmin},
      {0, 2 * kGiB, 3 * kGiB, 0, PrioritySource::kAdmin},  // lifted
  };
  for (const auto& one : kCases) {
    Registry registry;
    Client& client = registry.Add(ClientIn("/a", 1), 0);
    Config config;
    config.rules.push_back({.exe = "other", .memory_limit = 7 * kGiB});
    config.rules.push_back({.uid = 0, .memory_limit = one.rule});
    config.rules.push_back({.uid = 0, .memory_limit = 8 * kGiB});  // a second one never counts
    auto claim = std::make_shared<Claim>(MakeClaim("c", "/a"));
    claim->memory_limit = one.claim;
    client.claim = claim;
    client.admin_memory_limit = one.admin;
    const Effective effective = EffectiveOf(client, config);
    CHECK(effective.memory_limit == one.limit);
    CHECK(effective.memory_source == one.source);
  }
}

TEST_CASE("the clients of a claim may have together what it says, on each device") {
  MemoryWorld world;
  const ClaimPtr claim = world.MakeLimited(1, 24 * kGiB);
  const auto one = world.Limited(1, claim);
  const auto two = world.Limited(2, claim);
  const auto elsewhere = world.Limited(3, claim, kOtherGpu);
  const auto stranger = world.Limited(4, world.MakeLimited(2, 8 * kGiB));
  const auto free = world.Limited(5, nullptr);
  world.Look();
  const auto limits = [&] {
    std::vector<std::uint64_t> all;
    for (const Peer* peer : {one.get(), two.get(), elsewhere.get(), stranger.get(), free.get()})
      all.push_back(peer->board->MemoryLimit(0));
    return all;
  };
  using Limits = std::vector<std::uint64_t>;
  CHECK(limits() == Limits{24 * kGiB, 24 * kGiB, 24 * kGiB, 8 * kGiB, 0});
  one->ledger->SetMemory(0, 20 * kGiB, 0);
  stranger->ledger->SetMemory(0, 7 * kGiB, 0);
  free->ledger->SetMemory(0, 70 * kGiB, 0);
  CHECK(limits()[1] == 24 * kGiB);  // until the next look
  world.Look();
  CHECK(limits() == Limits{24 * kGiB, 4 * kGiB, 24 * kGiB, 8 * kGiB, 0});
  // Both took what was left before the next look: neither gets more, and nothing is taken back.
  one->ledger->SetMemory(0, 24 * kGiB, 0);
  two->ledger->SetMemory(0, 4 * kGiB, 0);
  world.Look();
  CHECK(limits() == Limits{20 * kGiB, 1, 24 * kGiB, 8 * kGiB, 0});
  CHECK(MemoryText(MemoryWorld::At(*one)) ==
        "it has 24.0 GiB here, and may have 20.0 GiB: by claim \"c1\", 24.0 GiB for all its clients together, of which "
        "the others have 4.00 GiB");
  const ClaimAccounts& accounts = world.scheduler.Records().Metrics().Claims();
  CHECK(accounts.Find(1)->memory_peak_bytes == 28 * kGiB);
  one->ledger->SetMemory(0, 0, 0);
  world.Look();
  CHECK(limits() == Limits{20 * kGiB, 24 * kGiB, 24 * kGiB, 8 * kGiB, 0});
  CHECK(accounts.Find(1)->memory_peak_bytes == 28 * kGiB);
  // What an administrator gives one member is its own; the others' parts stay.
  one->client->admin_memory_limit = 2 * kGiB;
  one->client->effective = EffectiveOf(*one->client, world.config);
  one->ledger->SetMemory(0, 1 * kGiB, 0);
  world.Look();
  CHECK(limits() == Limits{2 * kGiB, 23 * kGiB, 24 * kGiB, 8 * kGiB, 0});
  world.Disconnect(*one);
  world.Look();
  CHECK(two->board->MemoryLimit(0) == 24 * kGiB);
}

TEST_CASE("with enforcement off no limit is in force, and memory is followed as before") {
  MemoryWorld world;
  const auto one = world.Limited(1, world.MakeLimited(1, 24 * kGiB));
  world.Look();
  world.watch.SetEnforcing(false);
  one->ledger->SetMemory(0, 5 * kGiB, 1);
  world.watch.WriteUnattached(*one->client);
  world.Look();
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot)
    CHECK(one->board->MemoryLimit(slot) == 0);
  CHECK(world.scheduler.Records().Metrics().Claims().Find(1)->memory_peak_bytes == 5 * kGiB);
  world.watch.SetEnforcing(true);
  world.watch.WriteUnattached(*one->client);
  world.Look();
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot)
    CHECK(one->board->MemoryLimit(slot) == 24 * kGiB);
}

TEST_CASE("refused allocations are told once, then at most every ten seconds, and none is lost") {
  MemoryWorld world;
  const auto one = world.Limited(1, world.MakeLimited(1, 24 * kGiB));
  const auto unwatched = world.Limited(2, nullptr);
  using Told = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  world.Look();
  CHECK(world.told.empty());
  one->ledger->SetMemory(0, 0, 3);
  unwatched->ledger->SetMemory(0, 0, 3);
  world.Look();
  CHECK(world.told == Told{{1, 3}});
  for (std::uint64_t refused = 4; refused < 13; ++refused) {
    fake_now += policy::kNsPerS;
    one->ledger->SetMemory(0, 0, refused);
    world.Look();
  }
  CHECK(world.told == Told{{1, 3}});
  fake_now += 2 * policy::kNsPerS;
  world.Look();
  CHECK(world.told == Told{{1, 3}, {1, 9}});
  fake_now += 60 * policy::kNsPerS;
  world.Look();
  CHECK(world.told.size() == 2);
  // Another daemon takes over: what was refused before is not news.
  world.watch.Begin(MemoryWorld::At(*one));
  fake_now += 60 * policy::kNsPerS;
  world.Look();
  CHECK(world.told.size() == 2);
}

TEST_CASE("a client that lies about its memory changes only what its own claim's others may have") {
  MemoryWorld world;
  const ClaimPtr claim = world.MakeLimited(1, 24 * kGiB);
  const auto liar = world.Limited(1, claim);
  const auto member = world.Limited(2, claim);
  const auto stranger = world.Limited(3, world.MakeLimited(2, 8 * kGiB));
  for (const std::uint64_t bytes : {std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0} >> 1, std::uint64_t{1}}) {
    for (const std::uint64_t refused : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{5}}) {
      auto* const ledger = static_cast<abi::Ledger*>(liar->ledger_mapping.Address());
      for (abi::LedgerMemory& memory : ledger->memory)
        memory.bytes.store(bytes), memory.refused.store(refused);
      world.Look();
      CHECK(liar->board->MemoryLimit(0) == 24 * kGiB);
      CHECK(member->board->MemoryLimit(0) == MemoryAllowance(24 * kGiB, std::min(bytes, MemorySnapshot::kMostBytes)));
      CHECK(member->board->MemoryLimit(0) != 0);
      CHECK(stranger->board->MemoryLimit(0) == 8 * kGiB);
      CHECK(world.scheduler.Records().Metrics().Claims().Find(2)->memory_peak_bytes == 0);
    }
  }
  CHECK(world.told.size() == 1);
}

TEST_CASE("a client of an older release is not limited, counts nothing, and is said to be of one") {
  MemoryWorld world;
  const abi::Layout& old = abi::Spoken().front();
  REQUIRE(old.version < abi::kMemorySince);
  const ClaimPtr claim = world.MakeLimited(1, 24 * kGiB);
  const auto one = world.Limited(1, claim, kGpu, old);
  const auto two = world.Limited(2, claim);
  two->ledger->SetMemory(0, 4 * kGiB, 0);
  world.Look();
  CHECK(one->board->MemoryLimit(0) == 0);
  CHECK(two->board->MemoryLimit(0) == 24 * kGiB);
  CHECK(MemoryNotApplied(*one->client) == "the client's shim is of an older release");
  CHECK(MemoryNotApplied(*two->client).empty());
  CHECK(LimitHere(MemoryWorld::At(*one)).bytes == 0);
  CHECK(MemoryText(MemoryWorld::At(*one)).empty());
}

TEST_CASE("of a process's own limit and that of the daemon the smaller one is shown, with its source") {
  MemoryWorld world;
  world.config.rules.push_back({.uid = 0, .memory_limit = 24 * kGiB});
  const auto one = world.Limited(1, nullptr);
  world.Look();
  const Attachment& at = MemoryWorld::At(*one);
  one->ledger->SetMemory(0, 3 * kGiB, 0);
  CHECK(MemoryText(at) == "it has 3.00 GiB here, and may have 24.0 GiB: by a rule of the configuration");
  CHECK(MemoryRemedy(at) == "`xschedctl set 1 --memory SIZE` gives it more, or have it allocate less");
  one->client->own_memory_limit = 8 * kGiB;
  CHECK(MemoryText(at) == "it has 3.00 GiB here, and may have 8.00 GiB: its process's own limit (XSCHEDD_MEMORY)");
  CHECK(MemoryRemedy(at) == "start it with a larger `xschedctl run --memory`, or have it allocate less");
  one->client->own_memory_limit = 80 * kGiB;
  CHECK(LimitHere(at).bytes == 24 * kGiB);
  CHECK(!LimitHere(at).is_own);
}

TEST_CASE("a look in pieces reaches every device, and a device that comes or goes meanwhile breaks nothing") {
  MemoryWorld world;
  const ClaimPtr claim = world.MakeLimited(1, 24 * kGiB);
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::uint64_t pid = 1; pid <= 300; ++pid)
    peers.push_back(world.Limited(pid, claim, pid <= 100 ? kGpu : pid <= 200 ? kOtherGpu : "0000:c3:00.0"));
  int pieces = 1;
  while (world.watch.LookAtNext(fake_now)) {
    if (pieces++ == 1) world.Disconnect(*peers.back()), peers.pop_back();
  }
  CHECK(pieces == 3);
  for (const auto& peer : peers)
    CHECK(peer->board->MemoryLimit(0) == 24 * kGiB);
}

TEST_CASE("limits are in force when a client connects, and when they are set, put, removed or disabled") {
  boost::asio::io_context io;
  Config config = Believing();
  config.rules.push_back({.exe = "ruled", .memory_limit = 6 * kGiB});
  const CgroupTable cgroups{{"/a", 1}};
  Core core(io, {}, config);
  core.SetCgroups(InodesOf(cgroups));
  const Actor root{7, 0};
  const auto channel = Channel::Make().value();
  const Mapping board_mapping = MapSharedMemory(channel->BoardFd(), sizeof(abi::Board), Access::kReadOnly).value();
  const BoardReader board = BoardReader::Open(static_cast<const abi::Board*>(board_mapping.Address())).value();
  NewClient fresh = ClientIn("/a", 1);
  fresh.identity.exe = "ruled";
  fresh.channel = channel.get();
  Client& client = core.AddClient(std::move(fresh));
  CHECK(board.MemoryLimit(0) == 6 * kGiB);  // before its devices are known
  CHECK(board.MemoryLimit(63) == 6 * kGiB);
  REQUIRE(core.AttachDevice(client, {0, kGpu, "GPU", "amd", 4, {}}));
  CHECK(board.MemoryLimit(0) == 6 * kGiB);
  Claim claim = MakeClaim("c", "/a");
  claim.memory_limit = 2 * kGiB;
  REQUIRE(core.PutClaim(claim, root));
  CHECK(board.MemoryLimit(0) == 2 * kGiB);
  CHECK(board.MemoryLimit(5) == 2 * kGiB);
  CHECK(core.Events().Remembered().back().kind == EventKind::kClaim);
  core.SetMemoryLimit({&client}, 0, root);
  CHECK(board.MemoryLimit(0) == 0);
  CHECK(core.Events().Remembered().back().kind == EventKind::kMemory);
  CHECK(core.Events().Remembered().back().ReasonText() == "memory limit none: set to none by uid 0 (pid 7)");
  core.SetMemoryLimit({&client}, 3 * kGiB, root);
  CHECK(board.MemoryLimit(0) == 3 * kGiB);
  core.Disable(root);
  CHECK(board.MemoryLimit(0) == 0);
  CHECK(board.MemoryLimit(5) == 0);
  core.Enable(root);
  CHECK(board.MemoryLimit(0) == 3 * kGiB);
  CHECK(board.MemoryLimit(5) == 3 * kGiB);
  core.SetMemoryLimit({&client}, std::nullopt, root);
  CHECK(board.MemoryLimit(0) == 2 * kGiB);
  core.DeleteClaim("c", root);
  CHECK(board.MemoryLimit(0) == 6 * kGiB);

  const Mapping ledger_mapping = MapSharedMemory(channel->LedgerFd(), sizeof(abi::Ledger), Access::kReadWrite).value();
  auto& ledger = *static_cast<abi::Ledger*>(ledger_mapping.Address());
  ledger.memory[0].bytes = 5 * kGiB;
  ledger.memory[0].refused = 2;
  core.CheckMemory();
  CHECK(core.Events().Remembered().back().kind == EventKind::kMemory);
  CHECK(core.Events().Remembered().back().ReasonText() ==
        "2 allocations of device memory were refused: it has 5.00 GiB here, and may have 6.00 GiB: by a rule of the "
        "configuration");
  const std::size_t events = core.Events().Remembered().size();
  ledger.memory[0].refused = 200;
  core.CheckMemory();
  CHECK(core.Events().Remembered().size() == events);
  core.Stop();
}
