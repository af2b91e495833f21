// Counts launches without their device's lock. A stream that is busy with launches of known cost gets an account, which
// has cache lines of its own and some room of the window. A launch that fits into this room, and with which nothing
// else is due, is admitted and left in the account alone. So threads on different streams share nothing that they
// write.
//
//   (no grant) ──Grant──► granted ──Begin/Leave: one launch after the other──► granted ──Fold──► granted
//       ▲                                                                         │
//       └──────────────── Fold and take back: a launch went the device's way, ◄───┘
//                         something settled on the stream, or another window, ...
//
// A grant is given after a launch that was alone on its stream, and holds as long as all of this does:
//
//   window    it is that of the device's last launch; the account's room counts as in flight (Admission::Promise)
//   stream    it has unsettled work, so that the client is busy and no start marker is missing; no other launch is
//             admitted on it; markers may be recorded on it elsewhere (TrackedStreams::MayMarkElsewhere)
//   device    no marker is due, nothing is captured, there is no deadline, and the host is not ahead
//   daemon    where it expects the next wait by the number of launches, or measures, that in the ledger is not older
//             than kCountNs
//
// What an account has counted is missing in the device's figures until it is folded into them, so whoever needs these
// folds first. After a fold, the figures are what they would be without accounts. A launch whose grant has been taken
// back leaves by the device, as any other.
//
// Thread rule: Of and AreOpen, any thread, no lock. Begin and Leave, any thread; they only try the account's lock, and
// the launch goes by the device if another thread has it. The rest under the device's lock, which is taken first.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "client-shim/core/brief_lock.h"
#include "client-shim/core/captures.h"
#include "client-shim/core/cost_table.h"
#include "client-shim/core/deadlines.h"
#include "client-shim/core/fibonacci_hash.h"
#include "client-shim/core/launch_mix.h"
#include "client-shim/core/tracked_streams.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

// The daemon expects the next wait by the number of launches, and holds others from up to some milliseconds before it
// (daemon/policy/waits.h).
inline constexpr std::uint64_t kCountNs = 250'000;

class alignas(128) StreamAccount {  // a pair of cache lines: processors prefetch the second with the first
 public:
  // The terms of a grant, as of the moment when it is given.
  struct Terms {
    std::uintptr_t owner = 0;
    TrackedStream* stream = nullptr;
    std::uint64_t epoch = 0;
    std::uint32_t forgets = 0;
    Window window;
    std::uint64_t room_ns = 0;  // of the window; kNoLimit: the window has no limit
    std::uint64_t unmarked_ns = 0;
    std::uint64_t until_ns = 0;  // launches go by the device from then on
  };
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  static constexpr LaunchKey kNoKey = ~LaunchKey{0};  // not 0, which launches of unknown kind have
  // A kind of launch, and its cost while the grant is in force.
  struct Kind {
    LaunchKey key = kNoKey;
    LaunchKey function = 0;
    std::uint64_t weight_ns = 0;
    std::uint32_t launched = 0;  // with success, since the last fold
    std::uint16_t place = 0;     // in the cost table
    bool wants_time = false;     // the device decides whether the next one is timed
  };
  // A launch that was begun here.
  struct Begun {
    TrackedStream* stream;
    std::uint64_t epoch;
    std::uint64_t weight_ns;
    std::uint32_t forgets;
    std::uint32_t grant;
    std::uint16_t place;  // of its kind in the cost table
    std::uint8_t kind;
  };
  // What has happened since the last fold.
  struct Folded {
    TrackedStream* stream;
    std::uint64_t begun_ns;     // the weight of what was begun
    std::uint64_t last_ns;      // the time of the last begun
    std::uint64_t promised_ns;  // room of the window that is no longer promised
    std::uint32_t begun;        // launches
  };

  // ---- a launch
  // False: the launch has to go by the device.
  bool Begin(std::uintptr_t owner, const Window& window, LaunchKey key, LaunchKey function, bool may_time,
             std::uint64_t now_ns, Begun* begun) {
    const BriefHold hold(&lock_, BriefHold::How::kTry);
    if (!hold.IsHeld() || !is_granted_ || terms_.owner != owner || terms_.window != window) return false;
    const std::size_t number = NumberIn(SetOf(key), key);
    if (number == kNowhere) return false;
    const Kind& kind = kinds_[number];
    if (kind.function != function || (may_time && kind.wants_time)) return false;
    const std::uint64_t weight_ns = kind.weight_ns;
    if (weight_ns > terms_.room_ns || now_ns >= terms_.until_ns ||
        IsMarkerDueByCost(window.us, terms_.unmarked_ns + weight_ns, weight_ns))
      return false;
    if (terms_.room_ns != kNoLimit) terms_.room_ns -= weight_ns;
    terms_.unmarked_ns += weight_ns;
    ++begun_;
    last_ns_ = now_ns;  // may go back a little: threads do not come here in the order in which they read the clock
    *begun = Begun{
        terms_.stream, terms_.epoch, weight_ns, terms_.forgets, grant_, kind.place, static_cast<std::uint8_t>(number)};
    return true;
  }
  // After a successful call. False: the launch has to leave by the device, usually because the grant was taken back.
  bool Leave(std::uint32_t grant, std::uint8_t kind) {
    const BriefHold hold(&lock_, BriefHold::How::kTry);
    if (!hold.IsHeld() || grant != grant_) return false;
    if (kinds_[kind].launched++ == 0) launched_kinds_[launched_kinds_count_++] = kind;
    return true;
  }

  // ---- under the device's lock
  // It has no grant, so that all it has counted is folded.
  void Grant(const Terms& terms, const CostTable& costs, LaunchKey key, LaunchKey function) {
    const BriefHold hold(&lock_, BriefHold::How::kWait);
    if (terms_.owner != terms.owner) ForgetKinds();
    terms_ = terms;
    folded_ns_ = terms.unmarked_ns;
    promised_ns_ = terms.room_ns == kNoLimit ? 0 : terms.room_ns;
    const std::size_t own = NumberFor(key);
    kinds_[own] = Kind{key, function};
    if (std::exchange(cost_changes_, costs.Changes()) != costs.Changes()) {
      KindSet known;
      known_kinds_.TakeEach([&](std::size_t number) {
        if (LookUp(costs, &kinds_[number])) known.Add(number);
      });
      known_kinds_ = known;
    }
    if (LookUp(costs, &kinds_[own])) known_kinds_.Add(own);
    is_granted_ = true;
  }
  // Calls add(stream, kind) for each kind that was launched since the last fold. `takes_back`: also ends the grant.
  template <typename Add>
  Folded Fold(bool takes_back, Add add) {
    const BriefHold hold(&lock_, BriefHold::How::kWait);
    while (launched_kinds_count_ > 0) {
      Kind& kind = kinds_[launched_kinds_[--launched_kinds_count_]];
      add(terms_.stream, std::as_const(kind));
      kind.launched = 0;
    }
    // From now on, launches that were begun count as in flight, and no longer as promised.
    const std::uint64_t begun_ns = terms_.unmarked_ns - std::exchange(folded_ns_, terms_.unmarked_ns);
    const std::uint64_t kept_ns = takes_back || terms_.room_ns == kNoLimit ? 0 : promised_ns_ - begun_ns;
    const Folded folded{terms_.stream, begun_ns, last_ns_, promised_ns_ - kept_ns, begun_};
    promised_ns_ = kept_ns;
    begun_ = 0;
    if (takes_back) {
      is_granted_ = false;
      ++grant_;
    }
    return folded;
  }

 private:
  // An eager program launches some dozens of kinds by turns. One that has no place goes by the device, with its lock.
  static constexpr unsigned kSetBits = 4;
  static constexpr std::size_t kWays = 8;
  static constexpr std::size_t kKinds = kWays << kSetBits;
  static constexpr std::size_t kNowhere = kKinds;

  // Numbers of kinds.
  class KindSet {
   public:
    void Add(std::size_t number) { words_[number / 64] |= std::uint64_t{1} << number % 64; }
    // Calls take(number) for each, in order, and forgets them.
    template <typename Take>
    void TakeEach(Take take) {
      for (std::size_t word = 0; word < words_.size(); ++word) {
        for (std::uint64_t rest = std::exchange(words_[word], 0); rest != 0; rest &= rest - 1)
          take(64 * word + static_cast<std::size_t>(std::countr_zero(rest)));
      }
    }

   private:
    std::array<std::uint64_t, kKinds / 64> words_{};
  };

  // The first of the numbers that it may have.
  static std::size_t SetOf(LaunchKey key) { return kWays * FibonacciHash<kSetBits>(key); }
  // Of `key` in the set of numbers that begins with `first`; kNowhere: it is not there.
  std::size_t NumberIn(std::size_t first, LaunchKey key) const {
    for (std::size_t number = first; number < first + kWays; ++number) {
      if (kinds_[number].key == key) return number;
    }
    return kNowhere;
  }
  // Its number or, if it has none, a free one or another kind's.
  std::size_t NumberFor(LaunchKey key) const {
    const std::size_t first = SetOf(key);
    if (const std::size_t own = NumberIn(first, key); own != kNowhere) return own;
    const std::size_t free = NumberIn(first, kNoKey);
    return free != kNowhere ? free : first + grant_ % kWays;
  }
  void ForgetKinds() {
    known_kinds_.TakeEach([this](std::size_t number) { kinds_[number] = Kind{}; });
  }
  // False: its cost is not reliable, and no launch of it is counted here.
  static bool LookUp(const CostTable& costs, Kind* kind) {
    const CostTable::Known known = costs.CostOf(kind->key);
    if (known.cost_ns == 0 || !costs.IsSettled(known.place)) {
      *kind = Kind{};
      return false;
    }
    kind->weight_ns = known.cost_ns;
    kind->place = known.place;
    kind->wants_time = costs.WantsTiming(known.place);
    return true;
  }

  BriefLock lock_;
  std::uint32_t grant_ = 0;  // counts grants; a launch under another one leaves by the device
  bool is_granted_ = false;
  std::uint32_t begun_ = 0;  // launches since the last fold
  std::uint32_t launched_kinds_count_ = 0;
  std::uint64_t folded_ns_ = 0;     // terms_.unmarked_ns at the last fold
  std::uint64_t last_ns_ = 0;       // when a launch was last begun
  std::uint64_t promised_ns_ = 0;   // room of the window that is promised and not folded
  KindSet known_kinds_;             // those that are not empty
  std::uint64_t cost_changes_ = 0;  // CostTable::Changes() when they were looked up
  Terms terms_;
  // Numbers of those that were launched since the last fold: the first launched_kinds_count_.
  std::array<std::uint8_t, kKinds> launched_kinds_;
  std::array<Kind, kKinds> kinds_;
};

// The accounts of a device.
class StreamAccounts {
 public:
  static constexpr unsigned kAccountBits = 5;
  static constexpr std::size_t kAccounts = std::size_t{1} << kAccountBits;
  // Both outlive this object.
  StreamAccounts(const Captures* captures, const Deadlines* deadlines) : captures_(captures), deadlines_(deadlines) {}

  static constexpr std::uintptr_t kNobody = 0;

  // The stream as the owner of an account; kNobody: it cannot have one. The legacy default stream goes by its other
  // handle, because null means nobody.
  static std::uintptr_t OwnerOf(const StreamKey& key) {
    if (key.thread != 0) return kNobody;
    return key.handle == nullptr ? kLegacyHandle : reinterpret_cast<std::uintptr_t>(key.handle);
  }

  // ---- a launch
  // Whether accounts may be used now. During captures, launches record markers themselves; deadlines start at launches.
  bool AreOpen() const { return !captures_->Any() && !deadlines_->Any(); }
  // The account that `owner` has or had a moment ago; kAccounts: none.
  std::size_t Of(std::uintptr_t owner) const {
    const std::size_t first = PlaceOf(owner);
    for (std::size_t probe = 0; probe < kProbe; ++probe) {
      const std::size_t place = (first + probe) % kAccounts;
      // relaxed: a hint. Begin checks the owner under the account's lock.
      if (owners_[place].load(std::memory_order_relaxed) == owner) return place;
    }
    return kAccounts;
  }
  StreamAccount& At(std::size_t place) { return accounts_[place]; }

  // ---- under the device's lock
  bool IsGranted(std::size_t place) const { return (granted_ >> place & 1) != 0; }
  // A place for the account of `owner`, without a grant; kAccounts: all possible places have grants of others.
  std::size_t Make(std::uintptr_t owner) {
    if (const std::size_t place = Of(owner); place != kAccounts) return place;
    const std::size_t first = PlaceOf(owner);
    std::size_t found = kAccounts;
    for (std::size_t probe = 0; probe < kProbe; ++probe) {
      const std::size_t place = (first + probe) % kAccounts;
      const bool is_free = owners_[place].load(std::memory_order_relaxed) == kNobody;
      if (is_free || (found == kAccounts && !IsGranted(place))) found = place;
      if (is_free) break;
    }
    if (found != kAccounts) owners_[found].store(owner, std::memory_order_relaxed);  // relaxed: see Of
    return found;
  }
  void Grant(std::size_t place, const StreamAccount::Terms& terms, const CostTable& costs, LaunchKey key,
             LaunchKey function) {
    accounts_[place].Grant(terms, costs, key, function);
    granted_ |= std::uint64_t{1} << place;
  }
  void NoteTakenBack(std::size_t place) { granted_ &= ~(std::uint64_t{1} << place); }
  // A bit for each account with a grant. The others have counted nothing.
  std::uint64_t Granted() const { return granted_; }
  void FreeAll() {
    for (std::atomic<std::uintptr_t>& owner : owners_)
      owner.store(kNobody, std::memory_order_relaxed);  // relaxed: see Of
  }
  // The stream is gone. Its account, which has no grant any more, becomes free.
  void Free(std::uintptr_t owner) {
    if (const std::size_t place = Of(owner); place != kAccounts)
      owners_[place].store(kNobody, std::memory_order_relaxed);  // relaxed: see Of
  }

 private:
  static constexpr std::size_t kProbe = 4;
  static std::size_t PlaceOf(std::uintptr_t owner) { return FibonacciHash<kAccountBits>(owner); }

  // Read by each launch, written only when an account is made: on other cache lines than what launches write.
  alignas(128) const Captures* const captures_;
  const Deadlines* const deadlines_;
  std::array<std::atomic<std::uintptr_t>, kAccounts> owners_{};
  alignas(128) std::uint64_t granted_ = 0;
  std::array<StreamAccount, kAccounts> accounts_;
};

}  // namespace xschedd::shim
