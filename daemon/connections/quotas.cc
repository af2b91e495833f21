#include "daemon/connections/quotas.h"

#include <algorithm>
#include <utility>

#include "daemon/registry/limits.h"

namespace xschedd {
namespace {

constexpr double kBurstSeconds = 4;  // the most that can be saved up
constexpr std::uint64_t kQuietNs = 10 * policy::kNsPerS;
constexpr std::size_t kForgetAbove = 1024;
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
      uid_(other.uid_),
      kind_(other.kind_),
      amount_(std::exchange(other.amount_, 0)) {}

Quotas::Holding& Quotas::Holding::operator=(Holding&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  quotas_ = std::exchange(other.quotas_, nullptr);
  uid_ = other.uid_;
  kind_ = other.kind_;
  amount_ = std::exchange(other.amount_, 0);
  return *this;
}

bool Quotas::Holding::Add(std::uint64_t amount) {
  if (quotas_ == nullptr) return true;
  std::uint64_t& held = quotas_->AccountOf(uid_).held[Index(kind_)];
  const std::uint64_t limit = quotas_->Limit(uid_, kind_);
  if (held > limit || amount > limit - held) {
    quotas_->CountRefusal(kind_);
    return false;
  }
  held += amount;
  amount_ += amount;
  return true;
}

void Quotas::Holding::Remove(std::uint64_t amount) {
  if (quotas_ == nullptr) return;
  amount = std::min(amount, amount_);
  amount_ -= amount;
  quotas_->AccountOf(uid_).held[Index(kind_)] -= amount;
}

void Quotas::Holding::Reset() {
  if (quotas_ != nullptr && amount_ != 0) Remove(amount_);
  quotas_ = nullptr;
}

std::uint64_t Quotas::Limit(uid_t uid, QuotaKind kind) const {
  const Words& words = kWords[Index(kind)];
  const std::uint64_t times = uid == 0 ? limits_.root_times : 1;
  const std::uint64_t limit = limits_.*words.limit * words.unit * times;
  // However high the configured limit, one uid gets at most half of what exists.
  if (kind == QuotaKind::kConnections && capacity_ != 0) return std::min(limit, capacity_ / 2);
  return kind == QuotaKind::kDevices ? std::min<std::uint64_t>(limit, kMaxAttachments / 2) : limit;
}

std::uint64_t Quotas::Held(uid_t uid, QuotaKind kind) const {
  const auto found = accounts_.find(OwnerOf(uid));
  return found == accounts_.end() ? 0 : found->second.held.at(Index(kind));
}

bool Quotas::Has(uid_t uid, QuotaKind kind, std::uint64_t now_ns) {
  if (accounts_.size() >= kForgetAbove) Forget(now_ns);
  Rate& rate = RateOf(uid, kind);
  const auto per_second = static_cast<double>(Limit(uid, kind));
  const double full = per_second * kBurstSeconds;
  const double passed =
      rate.last_ns == 0 ? kBurstSeconds : static_cast<double>(now_ns - std::min(now_ns, rate.last_ns)) / 1e9;
  rate.left = std::min(full, rate.left + passed * per_second);
  rate.last_ns = now_ns;
  return rate.left >= 1;
}

void Quotas::Charge(uid_t uid, QuotaKind kind, std::uint64_t amount) {
  RateOf(uid, kind).left -= static_cast<double>(amount);
}

std::chrono::milliseconds Quotas::Pause(uid_t uid) const {
  // The more connections, the longer: many sessions that retry often would cost what the quota saves.
  return kShortestPause + std::chrono::milliseconds(Held(uid, QuotaKind::kConnections) / kConnectionsPerPauseMs);
}

std::string Quotas::Reason(uid_t uid, QuotaKind kind) const {
  const Words& words = kWords[Index(kind)];
  const std::uint64_t limit = Limit(uid, kind);
  const uid_t owner = OwnerOf(uid);
  const std::string who =
      "uid " + std::to_string(owner) + (owner == uid ? "" : " (with its subordinate uid " + std::to_string(uid) + ")");
  const std::string remedy = "; " + std::string(words.remedy) + ", or let an administrator raise ";
  const bool by_capacity = kind == QuotaKind::kConnections && capacity_ != 0 && limit == capacity_ / 2;
  std::string key = std::string(words.key) + " in [quota]";
  if (by_capacity) key = "LimitNOFILE of xschedd";
  if (Index(kind) < kHeldKinds) {
    return who + " has " + std::to_string(Held(uid, kind)) + " " + std::string(words.what) + ", and may have " +
           std::to_string(limit) + remedy + key;
  }
  return who + " has used up its " + std::to_string(limit) + " " + std::string(words.what) + remedy + key;
}

void Quotas::Forget(std::uint64_t now_ns) {
  std::erase_if(accounts_, [now_ns](const auto& entry) {
    const Account& account = entry.second;
    const auto is_quiet = [now_ns](const Rate& rate) { return rate.last_ns + kQuietNs < now_ns; };
    return std::all_of(account.held.begin(), account.held.end(), [](std::uint64_t held) { return held == 0; }) &&
           std::all_of(account.rates.begin(), account.rates.end(), is_quiet);
  });
}

}  // namespace xschedd
