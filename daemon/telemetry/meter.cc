#include "daemon/telemetry/meter.h"

#include <algorithm>
#include <utility>

#include "common/memory_limit.h"
#include "daemon/policy/benefit.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

constexpr std::uint64_t kUs = policy::kNsPerUs;
constexpr std::uint64_t kMs = policy::kNsPerMs;
constexpr std::uint64_t kS = policy::kNsPerS;
constexpr std::uint64_t kHoldBounds[] = {100 * kUs, 500 * kUs, 1 * kMs,   2'500 * kUs, 5 * kMs, 10 * kMs, 25 * kMs,
                                         50 * kMs,  100 * kMs, 250 * kMs, 1 * kS,      5 * kS,  30 * kS};
constexpr std::uint64_t kLatencyBounds[] = {5 * kUs,   10 * kUs, 20 * kUs, 50 * kUs, 100 * kUs, 200 * kUs,
                                            500 * kUs, 1 * kMs,  5 * kMs,  20 * kMs, 100 * kMs};
static_assert(std::size(kHoldBounds) <= TimeHistogram::kMaxBounds);
static_assert(std::size(kLatencyBounds) <= TimeHistogram::kMaxBounds);

// The longest label taken from client text.
constexpr std::size_t kLabelLimit = 64;
constexpr std::uint32_t kOtherPlace = 0;

// Growth since `base`, at most `most`.
std::uint64_t Grown(std::uint64_t now, std::uint64_t base, std::uint64_t most) {
  return std::min(now - std::min(base, now), most);
}

// Everything to count for an attachment since it began, limited to what is possible.
Usage UsageOf(const Attachment& attachment, std::uint64_t now_ns) {
  const Metered& metered = attachment.metered;
  Usage usage;
  usage.held_ns = attachment.HeldNsAt(now_ns) - metered.base.held_ns;
  usage.became_busy = metered.became_busy;
  usage.became_idle = metered.became_idle;
  usage.late = metered.late;
  usage.untracked_ns = metered.untracked_ns;
  if (metered.untracked_since_ns != 0) usage.untracked_ns += now_ns - std::min(now_ns, metered.untracked_since_ns);
  if (attachment.client->channel == nullptr) return usage;
  const LedgerReader& reader = attachment.client->channel->Ledger();
  const LedgerSnapshot ledger = reader.Read(attachment.slot);
  const std::uint64_t passed_ns = now_ns - std::min(now_ns, metered.begun_ns);
  const std::uint64_t most = (passed_ns / kMs + 1) * (Meter::kMaxLaunchesPerS / 1'000);
  usage.gpu_ns = Grown(ledger.gpu_time_ns, metered.base.gpu_ns, passed_ns);
  usage.launches = Grown(ledger.submitted, metered.base.launches, most);
  usage.completions = Grown(ledger.completed, metered.base.completions, most);
  usage.passed = Grown(ledger.passthrough, metered.base.passed, most);
  // Before the first look it has no limit, and nothing was refused.
  const auto& before = attachment.memory.refused_at_first;
  if (const auto memory = before ? reader.Memory(attachment.slot) : std::nullopt)
    usage.memory_refused = Grown(memory->refused, *before, most);
  return usage;
}

// Whether the GPU would have been this client's without sharing: it, or one of its claim or group, is the most
// important client of the device; of equals, the one that came first.
bool IsFirst(const Attachment& attachment) {
  const std::vector<Attachment*>& all = attachment.device->attachments;
  const auto first = std::max_element(all.begin(), all.end(), [](const Attachment* a, const Attachment* b) {
    return a->client->effective.priority < b->client->effective.priority;
  });
  if (first == all.end()) return true;
  const Client& one = *(*first)->client;
  const Client& own = *attachment.client;
  return &one == &own || one.group == own.group || (one.claim != nullptr && one.claim == own.claim);
}

}  // namespace

std::string_view ClassOf(const Effective& effective) {
  if (!effective.metric_class.empty()) return effective.metric_class;
  return effective.priority > 0 ? "high" : effective.priority < 0 ? "low" : "normal";
}

ClassAccount::ClassAccount(std::uint32_t device_in, std::uint32_t klass_in)
    : device(device_in), klass(klass_in), holds(kHoldBounds) {}

DeviceAccount::DeviceAccount(std::string id_in) : id(std::move(id_in)), latency(kLatencyBounds) {}

Meter::Meter() : devices_{DeviceAccount(std::string(kOther))}, classes_{std::string(kOther)} {
  accounts_.emplace_back(kOtherPlace, kOtherPlace);
}

// ---- places --------------------------------------------------------------------------------------------------------

std::uint32_t Meter::PlaceOf(Device& device) {
  if (device.metered != kNoAccount) return device.metered;
  const auto known = std::find_if(devices_.begin() + 1, devices_.end(),
                                  [&](const DeviceAccount& one) { return one.id == device.pci_address; });
  const bool is_new = known == devices_.end();
  auto place = static_cast<std::uint32_t>(known - devices_.begin());
  if (is_new && devices_.size() > kMaxMeteredDevices) {
    // If one device could be folded, the new one takes its place, which has no id now.
    place = kOtherPlace;
    if (FoldOne()) {
      place = static_cast<std::uint32_t>(
          std::find_if(devices_.begin(), devices_.end(), [](const DeviceAccount& one) { return one.id.empty(); }) -
          devices_.begin());
      devices_[place].id = device.pci_address;
    }
  } else if (is_new) {
    devices_.emplace_back(device.pci_address);
  }
  if (place != kOtherPlace) {
    DeviceAccount& account = devices_[place];
    account.name = CleanText(device.name, kLabelLimit);
    account.vendor = CleanText(device.vendor, kLabelLimit);
    if (is_new && uuid_of_) account.uuid = CleanText(uuid_of_(device.pci_address), kLabelLimit);
    account.has_clients = true;
    account.counting = 0;  // found during a count: this client is its first
  }
  device.metered = place;
  return place;
}

bool Meter::FoldOne() {
  const auto found =
      std::find_if(devices_.begin() + 1, devices_.end(), [](const DeviceAccount& one) { return !one.has_clients; });
  if (found == devices_.end()) return false;
  const auto place = static_cast<std::uint32_t>(found - devices_.begin());
  devices_[kOtherPlace].decisions += found->decisions;
  devices_[kOtherPlace].latency.Add(found->latency);
  *found = DeviceAccount({});
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    if (accounts_[i].device != place) continue;
    const std::uint32_t klass = accounts_[i].klass;
    const ClassAccount folded =
        std::exchange(accounts_[i], ClassAccount(kNoAccount, 0));  // freed first: FindAccount may reuse it
    ClassAccount& other = accounts_[FindAccount(kOtherPlace, klass)];
    AddUsage(folded.total, other.total);
    other.holds.Add(folded.holds);
  }
  return true;
}

std::uint32_t Meter::ClassPlace(std::string_view name) {
  const auto found = std::find(classes_.begin(), classes_.end(), name);
  if (found != classes_.end()) return static_cast<std::uint32_t>(found - classes_.begin());
  if (classes_.size() >= kMaxClasses) return kOtherPlace;
  classes_.emplace_back(name);
  return static_cast<std::uint32_t>(classes_.size() - 1);
}

std::uint32_t Meter::FindAccount(std::uint32_t device, std::uint32_t klass) {
  std::uint32_t free = kNoAccount;
  for (std::uint32_t i = 0; i < accounts_.size(); ++i) {
    if (accounts_[i].device == device && accounts_[i].klass == klass) return i;
    if (accounts_[i].device == kNoAccount) free = i;
  }
  if (free != kNoAccount) {
    accounts_[free] = ClassAccount(device, klass);
    return free;
  }
  if (accounts_.size() >= kMaxAccounts) return kOtherPlace;
  accounts_.emplace_back(device, klass);
  return static_cast<std::uint32_t>(accounts_.size() - 1);
}

ClassAccount& Meter::AccountOf(Attachment& attachment) {
  std::uint32_t& account = attachment.metered.account;
  if (account == kNoAccount) {
    const std::uint32_t device = PlaceOf(*attachment.device);
    account = FindAccount(device, ClassPlace(ClassOf(attachment.client->effective)));
  }
  return accounts_[account];
}

// ---- as it happens -------------------------------------------------------------------------------------------------

void Meter::Attached(Attachment& attachment, std::uint64_t now_ns) {
  Metered& metered = attachment.metered;
  metered.begun_ns = now_ns;
  metered.untracked_since_ns = attachment.gate.tracked ? 0 : now_ns;
  metered.base.held_ns = metered.waits_ns = attachment.HeldNsAt(now_ns);
  if (attachment.client->channel == nullptr) return;
  const LedgerSnapshot ledger = attachment.client->channel->Ledger().Read(attachment.slot);
  metered.base.gpu_ns = ledger.gpu_time_ns;
  metered.base.launches = ledger.submitted;
  metered.base.completions = ledger.completed;
  metered.base.passed = ledger.passthrough;
}

void Meter::HeldForAnother(Attachment& attachment, const Client* blocker, std::uint64_t now_ns) {
  CountWaits(attachment, now_ns);
  attachment.metered.blocker = blocker != nullptr ? blocker->id : 0;
  attachment.metered.blocker_claim = blocker != nullptr ? blocker->claim : nullptr;
}

void Meter::CountWaits(Attachment& attachment, std::uint64_t now_ns) {
  Metered& metered = attachment.metered;
  const std::uint64_t held_ns = attachment.HeldNsAt(now_ns);
  if (held_ns <= metered.waits_ns) return;
  const std::string blocker = metered.blocker != 0 ? SpaceOf(metered.blocker_claim.get()) : kNobody;
  spaces_.Wait(SpaceOf(attachment.client->claim.get()), blocker, held_ns - metered.waits_ns);
  metered.waits_ns = held_ns;
}

void Meter::HoldEnded(Attachment& attachment, std::uint64_t held_ns) {
  AccountOf(attachment).holds.Observe(held_ns);
}

void Meter::SetTracked(Attachment& attachment, bool is_tracked, std::uint64_t now_ns) {
  Metered& metered = attachment.metered;
  if (is_tracked && metered.untracked_since_ns != 0) {
    metered.untracked_ns += now_ns - std::min(now_ns, metered.untracked_since_ns);
  }
  if (is_tracked || metered.untracked_since_ns == 0) metered.untracked_since_ns = is_tracked ? 0 : now_ns;
}

void Meter::Close(Client& client, std::uint64_t now_ns) {
  for (const auto& [slot, attachment] : client.attachments) {
    Settle(*attachment, now_ns);
    attachment->metered.account = kNoAccount;
  }
}

void Meter::Gone(Device& device) {
  const std::uint32_t place = std::exchange(device.metered, kNoAccount);
  if (place != kNoAccount) devices_[place].has_clients = false;
}

void Meter::Settle(Attachment& attachment, std::uint64_t now_ns) {
  const Usage usage = UsageOf(attachment, now_ns);
  Usage& counted = attachment.metered.counted;
  Usage fresh;
  for (const auto part : kUsageParts) {
    // A ledger that goes back, which no honest one does, counts as unchanged.
    if (usage.*part <= counted.*part) continue;
    fresh.*part = usage.*part - counted.*part;
    counted.*part = usage.*part;
  }
  AddUsage(fresh, AccountOf(attachment).total);
  CountWaits(attachment, now_ns);
  if (fresh.gpu_ns != 0) {
    spaces_.Use(SpaceOf(attachment.client->claim.get()), fresh.gpu_ns, IsFirst(attachment) ? 0 : fresh.gpu_ns);
  }
  if (attachment.client->claim != nullptr && fresh != Usage()) claims_.Add(*attachment.client->claim, fresh);
}

void Meter::Settle(Client& client, std::uint64_t now_ns) {
  for (const auto& [slot, attachment] : client.attachments)
    Settle(*attachment, now_ns);
}

// ---- present state -------------------------------------------------------------------------------------------------

void Meter::Begin() {
  for (ClassAccount& account : accounts_)
    account.counting = {};
  for (DeviceAccount& device : devices_)
    device.counting = 0;
  claims_.BeginCount();
}

void Meter::Count(Client& client, std::uint64_t now_ns) {
  for (const auto& [slot, attachment] : client.attachments) {
    Settle(*attachment, now_ns);
    CountPresent(*attachment, now_ns);
  }
}

void Meter::CountPresent(const Attachment& attachment, std::uint64_t now_ns) {
  Present& present = accounts_[attachment.metered.account].counting;
  DeviceAccount& device = devices_[attachment.device->metered];
  const Phase phase = attachment.PhaseNow();
  ++present.clients[static_cast<std::size_t>(phase)];
  if (const policy::BenefitMemory& benefit = *attachment.client->group->memory.benefit; policy::IsSettled(benefit)) {
    ++present.modes[static_cast<std::size_t>(benefit.settled)];
  }
  if (attachment.held_since_ns != 0) {
    present.longest_hold_ns = std::max(present.longest_hold_ns, now_ns - std::min(now_ns, attachment.held_since_ns));
  }
  CountMemory(attachment, present);
  if (phase == Phase::kUntracked || attachment.client->channel == nullptr) {
    device.counting = -1;
    return;
  }
  const LedgerSnapshot ledger = attachment.client->channel->Ledger().Read(attachment.slot);
  present.in_flight += std::min<std::uint64_t>(ledger.in_flight, kMaxInFlight);
  present.window_us = std::max<std::uint64_t>(present.window_us, attachment.gate.window_us);
  const History::Recently recent = attachment.history.Recent({now_ns, ledger.gpu_time_ns});
  if (device.counting >= 0 && recent.time_ns != 0) {
    device.counting += static_cast<double>(recent.gpu_ns) / static_cast<double>(recent.time_ns);
  }
}

void Meter::CountMemory(const Attachment& attachment, Present& present) {
  const Client& client = *attachment.client;
  const auto memory = client.channel == nullptr ? std::nullopt : client.channel->Ledger().Memory(attachment.slot);
  if (!memory) return;
  present.memory_bytes += memory->bytes;
  const std::uint64_t limit = SmallerLimit(attachment.memory.limit, client.own_memory_limit);
  present.memory_limit_bytes = SmallerLimit(present.memory_limit_bytes, limit);
  if (client.claim != nullptr) claims_.CountMemory(client.claim->id, attachment.device->metered, memory->bytes);
}

void Meter::End() {
  claims_.EndCount();
  for (ClassAccount& account : accounts_)
    account.present = account.counting;
  // Clients that run side by side can add up to more than the device's time.
  for (DeviceAccount& device : devices_)
    device.utilization = device.has_clients ? std::min(device.counting, 1.0) : -1;
}

}  // namespace xschedd
