// Limits what each user may have and do on client.sock ([quota] in xschedd.toml). A user is a uid with its subordinate
// uids (subordinate_uids.h). A user at its quota is refused or read more slowly, and told why; nobody else is affected.
// admin.sock has no limits, because an administrator must get in when others have used everything up. Thread rule: the
// daemon's one thread; must outlive all its holdings.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/config/config.h"
#include "daemon/connections/subordinate_uids.h"

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
    Holding(Quotas& quotas, uid_t uid, QuotaKind kind) : quotas_(&quotas), uid_(quotas.OwnerOf(uid)), kind_(kind) {}
    Holding(Holding&& other) noexcept;
    Holding& operator=(Holding&& other) noexcept;
    ~Holding() { Reset(); }

    // False: the quota is reached; nothing is added and the refusal is counted.
    bool Add(std::uint64_t amount = 1);
    void Remove(std::uint64_t amount = 1);
    void Reset();

   private:
    Quotas* quotas_ = nullptr;
    uid_t uid_ = 0;  // the owner's at construction
    QuotaKind kind_ = QuotaKind::kConnections;
    std::uint64_t amount_ = 0;
  };

  explicit Quotas(const Quota& limits) : limits_(limits) {}

  void SetLimits(const Quota& limits) { limits_ = limits; }
  // Existing holdings keep their owner.
  void SetSubordinates(SubordinateUids subordinates) { subordinates_ = std::move(subordinates); }
  // The user that a uid counts as.
  uid_t OwnerOf(uid_t uid) const { return subordinates_.OwnerOf(uid); }
  // How many connections the daemon has descriptors for; one uid gets at most half. 0: unknown.
  void SetCapacity(std::uint64_t connections) { capacity_ = connections; }

  // Whether anything is left of a per-second quota.
  bool Has(uid_t uid, QuotaKind kind, std::uint64_t now_ns);
  // May overdraw; the debt is paid back first.
  void Charge(uid_t uid, QuotaKind kind, std::uint64_t amount);
  void CountRefusal(QuotaKind kind) { ++refused_[Index(kind)]; }

  // How long a session of a user with nothing left waits before it tries again.
  std::chrono::milliseconds Pause(uid_t uid) const;

  std::uint64_t Limit(uid_t uid, QuotaKind kind) const;
  std::uint64_t Held(uid_t uid, QuotaKind kind) const;  // not for per-second kinds
  std::uint64_t Refused(QuotaKind kind) const { return refused_[Index(kind)]; }
  // "uid 1000 has 2048 connections, and may have 2048; close some, or ... connections_per_uid in [quota]".
  std::string Reason(uid_t uid, QuotaKind kind) const;

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

  Account& AccountOf(uid_t owner) { return accounts_[owner]; }
  Rate& RateOf(uid_t uid, QuotaKind kind) { return AccountOf(OwnerOf(uid)).rates[Index(kind) - kHeldKinds]; }
  // Forgets idle uids that hold nothing, so that a user with many uids cannot fill the memory.
  void Forget(std::uint64_t now_ns);

  Quota limits_;
  SubordinateUids subordinates_;
  std::uint64_t capacity_ = 0;
  std::map<uid_t, Account> accounts_;
  std::array<std::uint64_t, kQuotaKinds> refused_{};
};

}  // namespace xschedd
