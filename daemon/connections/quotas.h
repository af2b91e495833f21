// Limits what each user may have and do on client.sock ([quota] in xschedd.toml). A user is a uid with its subordinate
// uids (subordinate_uids.h). Each of a user's places (registry/principal.h) may have a part of that, and all places and
// the host together no more than the user, so that many places gain nothing. A caller at its quota is refused, or read
// more slowly, with a reason; nobody else is affected. admin.sock has no limits, because an administrator must get in
// when others have used everything up. Thread rule: the daemon's one thread; must outlive all its holdings.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/config/config.h"
#include "daemon/connections/subordinate_uids.h"
#include "daemon/registry/principal.h"

namespace xschedd {

enum class QuotaKind {
  // held at one time
  kConnections,
  kClients,
  kQueues,
  kDevices,   // attachments
  kMemory,    // bytes of client text that the daemon keeps, and of messages that clients have not read
  kWatchers,  // WatchEvents calls
  // per second
  kConnects,
  kMessages,
  kMessageBytes,
  kCalls,  // to Admin; listing many clients counts as several
};
inline constexpr std::size_t kQuotaKinds = 10;
inline constexpr std::size_t kHeldKinds = 6;

// The name in `xschedctl stats`.
std::string_view Text(QuotaKind kind);

class Quotas {
 public:
  // Counts against a user for as long as it lives. Move-only.
  class Holding {
   public:
    Holding() = default;
    Holding(Quotas& quotas, const Principal& who, QuotaKind kind)
        : quotas_(&quotas), owner_(quotas.OwnerOf(who)), kind_(kind) {}
    Holding(Holding&& other) noexcept;
    Holding& operator=(Holding&& other) noexcept;
    ~Holding() { Reset(); }

    // False: the quota is reached; nothing is added and the refusal is counted.
    bool Add(std::uint64_t amount = 1);
    void Remove(std::uint64_t amount = 1);
    void Reset();

   private:
    Quotas* quotas_ = nullptr;
    Principal owner_;  // as it was at construction
    QuotaKind kind_ = QuotaKind::kConnections;
    std::uint64_t amount_ = 0;
  };

  explicit Quotas(const Quota& limits) : limits_(limits) {}

  void SetLimits(const Quota& limits) { limits_ = limits; }
  // Existing holdings keep their owner.
  void SetSubordinates(SubordinateUids subordinates) { subordinates_ = std::move(subordinates); }
  // The user that a uid counts as.
  std::uint32_t OwnerOf(std::uint32_t uid) const { return subordinates_.OwnerOf(uid); }
  Principal OwnerOf(const Principal& who) const { return {OwnerOf(who.uid), who.place}; }
  // How many connections the daemon has descriptors for; one uid gets at most half. 0: unknown.
  void SetCapacity(std::uint64_t connections) { capacity_ = connections; }

  // From here on, `who` has the uid of its process.
  // Whether anything is left of a per-second quota.
  bool Has(const Principal& who, QuotaKind kind, std::uint64_t now_ns);
  // May overdraw; the debt is paid back first.
  void Charge(const Principal& who, QuotaKind kind, std::uint64_t amount);
  void CountRefusal(QuotaKind kind) { ++refused_[Index(kind)]; }

  // How long a session with nothing left waits before it tries again.
  std::chrono::milliseconds Pause(const Principal& who) const;

  // For a place: its own limit; for the host: that of the uid in all.
  std::uint64_t Limit(const Principal& who, QuotaKind kind) const;
  std::uint64_t Held(const Principal& who, QuotaKind kind) const;  // not for per-second kinds
  std::uint64_t Refused(QuotaKind kind) const { return refused_[Index(kind)]; }
  // "uid 1000 has 2048 connections, and may have 2048; close some, or ... connections_per_uid in [quota]".
  // Says whether the place or the user is at its quota.
  std::string Reason(const Principal& who, QuotaKind kind) const;

 private:
  struct Rate {
    double left = 0;
    std::uint64_t last_ns = 0;  // 0: never used, so full
  };
  struct Account {
    std::array<std::uint64_t, kHeldKinds> held{};
    std::array<Rate, kQuotaKinds - kHeldKinds> rates{};
  };
  static constexpr std::size_t Index(QuotaKind kind) { return static_cast<std::size_t>(kind); }

  static Principal AllOf(const Principal& owner) { return owner.uid; }
  Rate& RateOf(const Principal& owner, QuotaKind kind) { return accounts_[owner].rates[Index(kind) - kHeldKinds]; }
  // All of these take an owner.
  bool HasOwn(const Principal& owner, QuotaKind kind, std::uint64_t now_ns);
  bool HasRoom(const Principal& owner, QuotaKind kind, std::uint64_t amount) const;
  // How much is left of either kind of quota.
  double LeftOf(const Principal& owner, QuotaKind kind) const;
  // Forgets idle accounts that hold nothing, so that a user with many uids or places cannot fill the memory.
  void Forget(std::uint64_t now_ns);

  Quota limits_;
  SubordinateUids subordinates_;
  std::uint64_t capacity_ = 0;
  std::map<Principal, Account> accounts_;  // of each place; without a place: of each user in all
  std::uint64_t forgot_ns_ = 0;
  std::array<std::uint64_t, kQuotaKinds> refused_{};
};

}  // namespace xschedd
