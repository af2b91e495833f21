// A scheduler with three honest clients and two that write anything to their ledgers, also while the daemon reads.
// Properties: a client that is alone on a device stays untracked; only attached slots are gated; no client's GPU time
// exceeds the time that has passed; the scheduler's view of a client follows from that client's ledger alone, also for
// its time slices, and only the policy's slices are requested. Clients 1 and 3 have a claim with a limit of memory,
// which is on every board of them, and on no other; it is never 0 there, and never more.
#include <atomic>
#include <memory>
#include <thread>

#include "daemon/admin/conversion.h"
#include "daemon/policy/slices.h"
#include "daemon/scheduler/memory_watch.h"
#include "daemon/scheduler/scheduler.h"
#include "tests/fuzz/input.h"

namespace {

using namespace xschedd;

constexpr std::uint32_t kClients = 5;  // 0 and 1: hostile; 2 and 3: honest, beside them; 4: honest and alone
constexpr std::uint32_t kHostile = 2;
constexpr std::uint32_t kAlone = 4;
// Steps from this number on are about time slices; in others only the remainder counts.
constexpr std::uint8_t kSliceSteps = 252;
// And from this one on about memory.
constexpr std::uint8_t kMemorySteps = 248;

std::uint64_t now_ns = 0;
std::uint64_t Now() {
  return now_ns;
}

struct Peer {
  std::unique_ptr<Channel> channel;
  Mapping board_mapping;
  Mapping ledger_mapping;
  std::unique_ptr<BoardReader> board;
  std::unique_ptr<LedgerWriter> ledger;
  Client* client = nullptr;

  std::atomic<std::uint32_t>* Words() { return static_cast<std::atomic<std::uint32_t>*>(ledger_mapping.Address()); }
};

constexpr std::uint32_t kWords = sizeof(abi::Ledger) / sizeof(std::uint32_t);
constexpr std::uint32_t kRing = offsetof(abi::Ledger, ring) / sizeof(std::uint32_t);
constexpr std::uint32_t kSlices = offsetof(abi::Ledger, slices) / sizeof(std::uint32_t);
constexpr std::uint32_t kMemory = offsetof(abi::Ledger, memory) / sizeof(std::uint32_t);
constexpr std::uint64_t kClaimLimit = std::uint64_t{24} << 30;

// Writes to one ledger while it lives.
class Scribbler {
 public:
  Scribbler(Peer& peer, std::uint32_t seed) : thread_([this, &peer, seed] { Run(peer, seed); }) {}
  ~Scribbler() {
    stop_ = true;
    thread_.join();
  }

 private:
  void Run(Peer& peer, std::uint32_t seed) {
    constexpr std::uint32_t kControl = offsetof(abi::Ledger, control) / 4;
    constexpr std::uint32_t kDevice = offsetof(abi::Ledger, devices) / 4;
    while (!stop_) {
      seed = seed * 1664525 + 1013904223;
      const std::uint32_t value = seed >> 7;
      const std::uint32_t spots[] = {
          kControl,           kControl + 2,       kDevice + seed % 16, kRing + seed % (abi::kRingSize * 4),
          kSlices + seed % 8, kMemory + seed % 16};
      // Small numbers are more frequent, because heads, slots and kinds are small.
      peer.Words()[spots[(seed >> 28) % std::size(spots)]].store((seed & 0x40) != 0 ? value : value % 130,
                                                                 std::memory_order_relaxed);
    }
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class World {
 public:
  World() : scheduler_(registry_, events_, &Now) {
    now_ns = 1'000 * policy::kNsPerS;
    policy::Settings settings;
    scheduler_.SetSettings(settings);
    for (std::uint32_t i = 0; i < kClients; ++i)
      Connect(i);
  }
  ~World() {
    for (Peer& peer : peers_)
      Disconnect(peer);
    scheduler_.Decide();
    FUZZ_CHECK(registry_.Clients().empty() && registry_.Devices().empty());
  }

  void Run(fuzz::Input& input) {
    const std::uint8_t how = input.Byte();
    std::unique_ptr<Scribbler> scribbler;
    if ((how & 3) == 3) scribbler = std::make_unique<Scribbler>(peers_[0], how * 77u);
    while (!input.IsEmpty())
      Step(input);
    for (std::uint32_t i = 0; i < kClients; ++i)
      Serve(peers_[i]);
    scheduler_.Decide();
    scheduler_.RenewLeases();
    Check();
  }

 private:
  static ClaimPtr MakeClaim() {
    Claim claim;
    claim.name = "c";
    claim.id = 1;
    claim.memory_limit = kClaimLimit;
    return std::make_shared<const Claim>(std::move(claim));
  }

  void Connect(std::uint32_t i) {
    Peer& peer = peers_[i];
    peer.channel = Channel::Make().value();
    peer.board_mapping = MapSharedMemory(peer.channel->BoardFd(), sizeof(abi::Board), Access::kReadOnly).value();
    peer.ledger_mapping = MapSharedMemory(peer.channel->LedgerFd(), sizeof(abi::Ledger), Access::kReadWrite).value();
    const auto* board = static_cast<const abi::Board*>(peer.board_mapping.Address());
    peer.board = std::make_unique<BoardReader>(BoardReader::Open(board).value());
    peer.ledger.reset(
        LedgerWriter::Open(static_cast<abi::Ledger*>(peer.ledger_mapping.Address()), board, peer.channel->EventFd())
            .value());
    NewClient fresh;
    fresh.identity.pid = 100 + i;
    fresh.channel = peer.channel.get();
    peer.client = &registry_.Add(std::move(fresh), now_ns);
    peer.client->effective.priority = i == 2 ? 50 : 0;
    if (HasClaim(i)) GiveClaim(*peer.client);
    Attach(peer, 0, i == kAlone ? "0000:c2:00.0" : "0000:c1:00.0");
  }

  static bool HasClaim(std::uint32_t i) { return i == 1 || i == 3; }

  void GiveClaim(Client& client) {
    SetClaim(client, claim_);
    client.effective.memory_limit = kClaimLimit;
    client.effective.memory_source = PrioritySource::kClaim;
    watch_.WriteUnattached(client);
  }

  void Disconnect(Peer& peer) {
    scheduler_.Changed(*peer.client);
    scheduler_.Remove(*peer.client);
    registry_.Remove(peer.client->id);
  }

  void Attach(Peer& peer, std::uint32_t slot, const std::string& address) {
    const char* const vendor = address.starts_with("0000:c3") ? "nvidia" : "amd";
    const auto attachment = registry_.Attach(*peer.client, {slot, address, "GPU", vendor, 4, {}});
    if (!attachment) return;
    (*attachment)->history.Begin(now_ns);
    watch_.Begin(**attachment);
    watch_.LookAt(*(*attachment)->device, now_ns);
    scheduler_.Changed(*peer.client);
    scheduler_.Decide();
  }

  void Serve(Peer& peer) { (void)scheduler_.ReadActivity(*peer.client); }

  void Step(fuzz::Input& input) {
    const std::uint8_t op = input.Byte();
    Peer& hostile = peers_[input.Byte() % kHostile];
    if (op >= kSliceSteps) return ClaimSlice(hostile, input);
    if (op >= kMemorySteps) return ClaimMemory(hostile, input);
    switch (op % 12) {
      case 0:
        hostile.Words()[input.Below(kWords)] = input.Take<std::uint32_t>();
        break;
      case 1:  // the ring's control, or a device's counters
        hostile.Words()[(input.Flag() ? 16u : 32u) + input.Byte() % 16] = input.Take<std::uint32_t>();
        break;
      case 2: {  // a record and the head, as an honest client writes them, with any content
        auto& ledger = *static_cast<abi::Ledger*>(hostile.ledger_mapping.Address());
        const std::uint64_t head = ledger.control.ring_head;
        const std::uint64_t time_ns = input.Take<std::uint64_t>();
        const std::uint32_t kind = input.Byte() % 4u;
        // Word by word, because the ledger's other writer may write here, too.
        const std::size_t at = kRing + head % abi::kRingSize * (sizeof(abi::Transition) / 4);
        std::size_t word = at;
        for (const std::uint32_t part :
             {static_cast<std::uint32_t>(time_ns), static_cast<std::uint32_t>(time_ns >> 32), kind, input.Byte() % 80u})
          hostile.Words()[word++].store(part, std::memory_order_relaxed);
        ledger.control.ring_head = head + 1 + input.Byte() % 3;
        break;
      }
      case 3: {
        const std::uint32_t slot = input.Byte() % 4;
        hostile.ledger->Device(slot).deadline_ns = input.Take<std::uint64_t>();
        hostile.ledger->Report(slot, input.Flag() ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, now_ns);
        break;
      }
      case 4: {
        Peer& honest = peers_[2 + input.Byte() % 3];
        honest.ledger->Report(0, input.Flag() ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, now_ns);
        Serve(honest);
        scheduler_.Decide();
        break;
      }
      case 5:
        now_ns += input.Take<std::uint32_t>();
        scheduler_.Decide();
        break;
      case 6: {
        static constexpr const char* kAddresses[] = {"0000:c1:00.0", "0000:c3:00.0", "0000:c3:00.0/1"};
        Attach(hostile, input.Byte() % 70, kAddresses[input.Byte() % 3]);
        break;
      }
      case 7: {
        policy::Settings settings = scheduler_.Settings();
        settings.name = policy::Names()[input.Byte() % policy::Names().size()];
        settings.linger_us = input.Flag() ? 0 : 500;
        scheduler_.SetSettings(settings);
        break;
      }
      case 8: {
        Client& client = *peers_[input.Byte() % kAlone].client;
        client.hold = input.Flag();
        client.effective.priority = static_cast<int>(input.Byte() % 201) - 100;
        client.effective.weight = 1 + input.Below(10'000);
        scheduler_.Changed(client);
        break;
      }
      case 9: {
        Client& client = *hostile.client;
        scheduler_.Changed(client);
        registry_.MoveToGroup(client, input.Flag() ? "gang" : "");
        scheduler_.Changed(client);
        break;
      }
      case 10:
        scheduler_.RenewLeases();
        break;
      default:
        Serve(hostile);
        scheduler_.Decide();
        Check();
        break;
    }
  }

  // The client's claims about its time slice, in any words; and whether the daemon requests one.
  void ClaimSlice(Peer& hostile, fuzz::Input& input) {
    const std::uint32_t at = kSlices + input.Byte() % 8u * (sizeof(abi::LedgerSlice) / sizeof(std::uint32_t));
    const bool any = input.Flag();
    hostile.Words()[at] = any ? input.Take<std::uint32_t>() : input.Byte() % 5u;
    hostile.Words()[at + 1] = input.Take<std::uint32_t>();
    policy::Settings settings = scheduler_.Settings();
    settings.time_slices = input.Flag();
    scheduler_.SetSettings(settings);
    scheduler_.Decide();
    Check();
  }

  // The client's account of memory, in any words.
  void ClaimMemory(Peer& hostile, fuzz::Input& input) {
    const std::uint32_t at = kMemory + input.Byte() % 8u * (sizeof(abi::LedgerMemory) / sizeof(std::uint32_t));
    for (std::uint32_t word = 0; word < sizeof(abi::LedgerMemory) / sizeof(std::uint32_t); ++word)
      hostile.Words()[at + word] = input.Take<std::uint32_t>();
    watch_.LookAtNext(now_ns);
    Check();
  }

  void CheckMemory(const Peer& peer, std::uint32_t slot, bool is_limited) const {
    const std::uint64_t limit = peer.board->MemoryLimit(slot);
    FUZZ_CHECK(is_limited ? limit != 0 && limit <= kClaimLimit : limit == 0);
  }

  static void CheckSlice(const v1::ClientDevice& device, bool asks, std::uint32_t client) {
    const std::uint32_t wanted = device.slice_wanted_us();
    const std::uint32_t claimed = device.slice_us();
    FUZZ_CHECK(wanted == 0 || (asks && wanted <= policy::kLongSliceUs));
    // Honest clients claim nothing here. The first one's claims may change while they are read.
    if (client >= kHostile) FUZZ_CHECK(claimed == 0 && device.slice().empty() == (wanted == 0));
    if (client != 0 && claimed != 0) FUZZ_CHECK(device.slice() == "time slice " + std::to_string(claimed) + " us");
    FUZZ_CHECK(device.slice().size() < 100);
  }

  void Check() {
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const Peer& peer = peers_[i];
      std::uint32_t flagged = 0;
      for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
        CheckMemory(peer, slot, HasClaim(i));
        const std::uint32_t flags = peer.board->Word(slot) & abi::kFlagMask;
        const auto found = peer.client->attachments.find(slot);
        if (found == peer.client->attachments.end()) {
          FUZZ_CHECK(peer.board->Word(slot) == 0 && peer.board->WindowUs(slot) == 0 && peer.board->SliceUs(slot) == 0);
          continue;
        }
        const policy::Gate& gate = found->second->gate;
        FUZZ_CHECK(flags == ((gate.held ? abi::kHeld : 0u) | (gate.tracked ? abi::kTracked : 0u)));
        flagged += flags != 0 ? 1 : 0;
      }
      FUZZ_CHECK(flagged == peer.client->flagged_gates);
      FUZZ_CHECK((peer.board->SummaryWord()->load() != 0) == (flagged != 0));
      if (flagged != 0) FUZZ_CHECK(peer.board->LeaseUntilNs() != 0);
      v1::Client told;
      FillClient(*peer.client, scheduler_, now_ns, told);
      for (const v1::ClientDevice& device : told.devices()) {
        FUZZ_CHECK(device.recent_gpu_ns() <= device.recent_ns());
        FUZZ_CHECK(device.completed() <= device.submitted());
        FUZZ_CHECK(device.held_ns() <= now_ns);
        CheckSlice(device, scheduler_.Settings().time_slices, i);
      }
    }
    FUZZ_CHECK(peers_[kAlone].board->Word(0) == 0);
    FUZZ_CHECK(registry_.Devices().size() <= 4);
    FUZZ_CHECK(scheduler_.NextDueNs() > 0);
  }

  Registry registry_;
  EventLog events_;
  Scheduler scheduler_;
  ClaimPtr claim_ = MakeClaim();
  MemoryWatch watch_{registry_, scheduler_.Records().Metrics().Claims(), [](const Attachment&, std::uint64_t) {}};
  Peer peers_[kClients];
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  World world;
  world.Run(input);
  return 0;
}
