#include "daemon/connections/quotas.h"

#include <algorithm>
#include <utility>

#include "daemon/registry/limits.h"

namespace xschedd {
namespace {

constexpr double kBurstSeconds = 4;  // the most that can be saved up
constexpr std::uint64_t kQuietNs = 10 * policy::kNsPerS;
constexpr std::size_t kForgetAbove = 1024;
constexpr std::uint64_t kForgetEveryNs = policy::kNsPerS;
constexpr std::chrono::milliseconds kShortestPause{10};
constexpr std::uint64_t kConnectionsPerPauseMs = 10;

struct Words {
  std::string_view name;    // in `xschedctl stats`
  std::string_view what;    // after "uid 1000 has 5" or "uid 1000 has used up its 5"
  std::string_view remedy;  // for the user
  std::string_view key;     // in [quota]
  std::uint32_t Quota::*limit;
  std::uint64_t unit = 1;  // of the limit
};

constexpr std::uint64_t kKiB = 1024;

constexpr Words kWords[kQuotaKinds] = {
    {"connections", "connections", "close some of them", "connections_per_uid", &Quota::connections_per_uid},
    {"clients", "clients", "end some of them", "clients_per_uid", &Quota::clients_per_uid},
    {"queues", "queues", "destroy some of them", "queues_per_uid", &Quota::queues_per_uid},
    {"devices", "attached devices, counted for each client", "end some clients", "devices_per_uid",
     &Quota::devices_per_uid},
    {"memory", "bytes of names and of unread messages in the daemon", "use shorter names, and read messages sooner",
     "memory_kib_per_uid", &Quota::memory_kib_per_uid, kKiB},
    {"watchers", "watchers of events", "end some of them", "watchers_per_uid", &Quota::watchers_per_uid},
    {"connects", "new connections per second", "connect less often", "connects_per_s", &Quota::connects_per_s},
    {"messages", "messages per second", "send fewer", "messages_per_s", &Quota::messages_per_s},
    {"message-bytes", "bytes of messages per second", "send fewer", "message_kib_per_s", &Quota::message_kib_per_s,
     kKiB},
    {"calls", "xschedctl calls per second", "call less often", "calls_per_s", &Quota::calls_per_s},
};

}  // namespace

std::string_view Text(QuotaKind kind) {
  return kWords[static_cast<std::size_t>(kind)].name;
}

Quotas::Holding::Holding(Holding&& other) noexcept
    : quotas_(std::exchange(other.quotas_, nullptr)),
      owner_(std::move(other.owner_)),
      kind_(other.kind_),
      amount_(std::exchange(other.amount_, 0)) {}

Quotas::Holding& Quotas::Holding::operator=(Holding&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  quotas_ = std::exchange(other.quotas_, nullptr);
  owner_ = std::move(other.owner_);
  kind_ = other.kind_;
  amount_ = std::exchange(other.amount_, 0);
  return *this;
}

bool Quotas::Holding::Add(std::uint64_t amount) {
  if (quotas_ == nullptr) return true;
  const Principal all = AllOf(owner_);
  if (!quotas_->HasRoom(all, kind_, amount) || (all != owner_ && !quotas_->HasRoom(owner_, kind_, amount))) {
    quotas_->CountRefusal(kind_);
    return false;
  }
  quotas_->accounts_[all].held.at(Index(kind_)) += amount;
  if (all != owner_) quotas_->accounts_[owner_].held.at(Index(kind_)) += amount;
  amount_ += amount;
  return true;
}

void Quotas::Holding::Remove(std::uint64_t amount) {
  if (quotas_ == nullptr) return;
  amount = std::min(amount, amount_);
  if (amount == 0) return;
  amount_ -= amount;
  const Principal all = AllOf(owner_);
  quotas_->accounts_[all].held.at(Index(kind_)) -= amount;
  if (all != owner_) quotas_->accounts_[owner_].held.at(Index(kind_)) -= amount;
}

void Quotas::Holding::Reset() {
  if (quotas_ != nullptr && amount_ != 0) Remove(amount_);
  quotas_ = nullptr;
}

std::uint64_t Quotas::Limit(const Principal& who, QuotaKind kind) const {
  const Words& words = kWords[Index(kind)];
  const std::uint64_t times = who.uid == 0 ? limits_.root_times : 1;
  const std::uint64_t single = limits_.*words.limit * words.unit;
  std::uint64_t limit = single * times;
  // However high the configured limit, one uid gets at most half of what exists.
  if (kind == QuotaKind::kConnections && capacity_ != 0) limit = std::min(limit, capacity_ / 2);
  if (kind == QuotaKind::kDevices) limit = std::min<std::uint64_t>(limit, kMaxAttachments / 2);
  // Root's larger quota is for all its places together.
  return who.place.empty() ? limit : PlaceLimit(limit, single);
}

std::uint64_t Quotas::Held(const Principal& who, QuotaKind kind) const {
  const auto found = accounts_.find(OwnerOf(who));
  return found == accounts_.end() ? 0 : found->second.held.at(Index(kind));
}

bool Quotas::HasRoom(const Principal& owner, QuotaKind kind, std::uint64_t amount) const {
  const auto found = accounts_.find(owner);
  const std::uint64_t held = found == accounts_.end() ? 0 : found->second.held.at(Index(kind));
  const std::uint64_t limit = Limit(owner, kind);
  return held <= limit && amount <= limit - held;
}

bool Quotas::Has(const Principal& who, QuotaKind kind, std::uint64_t now_ns) {
  if (accounts_.size() >= kForgetAbove && now_ns >= forgot_ns_ + kForgetEveryNs) Forget(now_ns);
  const Principal owner = OwnerOf(who);
  // The user first: once it has nothing left, it makes no accounts for new places.
  return HasOwn(AllOf(owner), kind, now_ns) && (owner.place.empty() || HasOwn(owner, kind, now_ns));
}

bool Quotas::HasOwn(const Principal& owner, QuotaKind kind, std::uint64_t now_ns) {
  Rate& rate = RateOf(owner, kind);
  const auto per_second = static_cast<double>(Limit(owner, kind));
  const double full = per_second * kBurstSeconds;
  const double passed =
      rate.last_ns == 0 ? kBurstSeconds : static_cast<double>(now_ns - std::min(now_ns, rate.last_ns)) / 1e9;
  rate.left = std::min(full, rate.left + passed * per_second);
  rate.last_ns = now_ns;
  return rate.left >= 1;
}

void Quotas::Charge(const Principal& who, QuotaKind kind, std::uint64_t amount) {
  const Principal owner = OwnerOf(who);
  RateOf(AllOf(owner), kind).left -= static_cast<double>(amount);
  if (!owner.place.empty()) RateOf(owner, kind).left -= static_cast<double>(amount);
}

std::chrono::milliseconds Quotas::Pause(const Principal& who) const {
  // Longer with more connections: many sessions that retry often would cost what the quota saves.
  return kShortestPause + std::chrono::milliseconds(Held(who, QuotaKind::kConnections) / kConnectionsPerPauseMs);
}

double Quotas::LeftOf(const Principal& owner, QuotaKind kind) const {
  const auto found = accounts_.find(owner);
  const auto limit = static_cast<double>(Limit(owner, kind));
  if (found == accounts_.end()) return limit;
  if (Index(kind) >= kHeldKinds) return found->second.rates.at(Index(kind) - kHeldKinds).left;
  return limit - static_cast<double>(found->second.held.at(Index(kind)));
}

std::string Quotas::Reason(const Principal& who, QuotaKind kind) const {
  const Words& words = kWords[Index(kind)];
  const Principal owner = OwnerOf(who);
  // Whichever has less left refuses.
  const bool is_place = !owner.place.empty() && LeftOf(owner, kind) < LeftOf(AllOf(owner), kind);
  const Principal at_limit = is_place ? owner : AllOf(owner);
  const std::uint64_t limit = Limit(at_limit, kind);
  const std::string text =
      Text(at_limit) + (owner.uid == who.uid ? "" : " (with its subordinate uid " + std::to_string(who.uid) + ")");
  const std::string remedy = "; " + std::string(words.remedy) + ", or let an administrator raise ";
  const bool by_capacity =
      kind == QuotaKind::kConnections && capacity_ != 0 && Limit(AllOf(owner), kind) == capacity_ / 2;
  std::string key = std::string(words.key) + " in [quota]";
  if (by_capacity) key = "LimitNOFILE of xschedd";
  if (Index(kind) < kHeldKinds) {
    const auto found = accounts_.find(at_limit);
    const std::uint64_t held = found == accounts_.end() ? 0 : found->second.held.at(Index(kind));
    return text + " has " + std::to_string(held) + " " + std::string(words.what) + ", and may have " +
           std::to_string(limit) + remedy + key;
  }
  return text + " has used up its " + std::to_string(limit) + " " + std::string(words.what) + remedy + key;
}

void Quotas::Forget(std::uint64_t now_ns) {
  forgot_ns_ = now_ns;
  std::erase_if(accounts_, [now_ns](const auto& entry) {
    const Account& account = entry.second;
    const auto is_quiet = [now_ns](const Rate& rate) { return rate.last_ns + kQuietNs < now_ns; };
    return std::all_of(account.held.begin(), account.held.end(), [](std::uint64_t held) { return held == 0; }) &&
           std::all_of(account.rates.begin(), account.rates.end(), is_quiet);
  });
}

}  // namespace xschedd
