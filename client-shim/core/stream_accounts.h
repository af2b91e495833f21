// What launches do without their device's lock. A stream that is busy with kinds of launches whose cost is known gets
// an account, with lines of the cache of its own and some room of the window: a launch that finds room in it, and at
// which nothing else is due, is admitted and left in the account alone. So threads on different streams share nothing
// that they write.
//
//   (no grant) ──Grant──► granted ──Begin/Leave: one launch after the other──► granted ──Fold──► granted
//       ▲                                                                         │
//       └──────────────── Fold and take back: a launch went the device's way, ◄───┘
//                         something settled on the stream, or another window, ...
//
// A grant is given behind a launch that was alone on its stream, for as long as these stay so:
//
//   the window     is the one that was asked for last; its room in the account counts as in flight (Admission::Promise)
//   the stream     has work that is not settled, so that the client is busy and a start marker is there or not needed;
//                  no other launch is admitted on it; others may mark it (TrackedStreams::MayMarkElsewhere)
//   no marker      is due, nothing is captured, there is no deadline, and the host is not ahead
//
// What is in an account is missing in the device's own figures until it is folded into them: whoever needs them folds
// first. Folded at any moment, the figures are what they were without accounts. A launch whose grant was taken back
// meanwhile leaves by the device, as any other.
//
// Thread rule: Of, any thread, no lock. Begin and Leave, any thread; they try the account's lock alone, and go to the
// device if another thread has it. The rest under the device's lock, which comes first.
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
#include "client-shim/core/launch_mix.h"
#include "client-shim/core/tracked_streams.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

class alignas(128) StreamAccount {  // a line and the one that a processor fetches with it
 public:
  // By what a grant is given; all as it is at that moment.
  struct Terms {
    std::uintptr_t owner = 0;
    TrackedStream* stream = nullptr;
    std::uint64_t epoch = 0;
    std::uint32_t forgets = 0;
    Window window;
    std::uint64_t room_ns = 0;  // of the window; kNoLimit: it has none
    std::uint64_t unmarked_ns = 0;
    std::uint64_t marked_at_ns = 0;
  };
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  // What is launched, and what it costs for as long as the grant is in force.
  struct Kind {
    LaunchKey key = 0;  // 0: none
    LaunchKey function = 0;
    std::uint64_t weight_ns = 0;
    std::uint32_t left = 0;   // launches since the last fold
    std::uint16_t place = 0;  // among the costs
    bool wants_time = false;  // whether one is to be timed is for the device to say
  };
  // One that was begun here.
  struct Begun {
    TrackedStream* stream;
    std::uint64_t epoch;
    std::uint64_t weight_ns;
    std::uint32_t forgets;
    std::uint32_t grant;
    std::uint16_t place;  // of its kind among the costs
    std::uint8_t kind;
  };
  // Since the last fold.
  struct Folded {
    TrackedStream* stream;
    std::uint64_t begun_ns;
    std::uint64_t last_ns;      // when one was begun last
    std::uint64_t promised_ns;  // of the window's room, and no longer
    std::uint32_t begun;
  };

  // ---- a launch
  // False: it has to go to the device.
  bool Begin(std::uintptr_t owner, const Window& window, LaunchKey key, LaunchKey function, bool may_time,
             std::uint64_t now_ns, Begun* begun) {
    const BriefHold hold(&lock_, BriefHold::How::kTry);
    if (!hold.IsHeld() || !is_granted_ || terms_.owner != owner || terms_.window != window) return false;
    const std::size_t number = NumberOf(key);
    const Kind& kind = kinds_[number];
    if (kind.key != key || key == 0 || kind.function != function || (may_time && kind.wants_time)) return false;
    const std::uint64_t weight_ns = kind.weight_ns;
    if (weight_ns > terms_.room_ns ||
        IsMarkerDue(window.us, terms_.unmarked_ns + weight_ns, weight_ns, now_ns - terms_.marked_at_ns))
      return false;
    if (terms_.room_ns != kNoLimit) terms_.room_ns -= weight_ns;
    terms_.unmarked_ns += weight_ns;
    ++begun_;
    last_ns_ = now_ns;  // of several threads the last to come here may have looked at the clock a moment before another
    *begun = Begun{
        terms_.stream, terms_.epoch, weight_ns, terms_.forgets, grant_, kind.place, static_cast<std::uint8_t>(number)};
    return true;
  }
  // After a success. False: the grant has been taken back, and the launch has to leave by the device.
  bool Leave(std::uint32_t grant, std::uint8_t kind) {
    const BriefHold hold(&lock_, BriefHold::How::kTry);
    if (!hold.IsHeld() || grant != grant_) return false;
    ++kinds_[kind].left;
    left_kinds_ |= std::uint32_t{1} << kind;
    return true;
  }

  // ---- under the device's lock
  void Grant(const Terms& terms, const CostTable& costs, LaunchKey key, LaunchKey function) {
    const BriefHold hold(&lock_, BriefHold::How::kWait);
    if (terms_.owner != terms.owner) known_kinds_ = 0;
    terms_ = terms;
    folded_ns_ = terms.unmarked_ns;
    promised_ns_ = terms.room_ns == kNoLimit ? 0 : terms.room_ns;
    const std::size_t own = NumberOf(key);
    kinds_[own] = Kind{key, function};
    known_kinds_ |= std::uint32_t{1} << own;
    for (std::uint32_t rest = known_kinds_; rest != 0; rest &= rest - 1) {
      const auto number = static_cast<std::size_t>(std::countr_zero(rest));
      if (!LookUp(costs, &kinds_[number])) known_kinds_ &= ~(std::uint32_t{1} << number);
    }
    is_granted_ = true;
  }
  // Calls left(stream, kind) for each kind that was left since the last fold. `takes_back`: and ends the grant.
  template <typename Left>
  Folded Fold(bool takes_back, Left left) {
    const BriefHold hold(&lock_, BriefHold::How::kWait);
    for (; left_kinds_ != 0; left_kinds_ &= left_kinds_ - 1) {
      Kind& kind = kinds_[static_cast<std::size_t>(std::countr_zero(left_kinds_))];
      left(terms_.stream, std::as_const(kind));
      kind.left = 0;
    }
    // What was begun is in flight by itself from here on.
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
  static constexpr unsigned kKindBits = 5;  // one that falls together with another replaces it

  static std::size_t NumberOf(LaunchKey key) {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ull) >> (64 - kKindBits));
  }
  // False: it is not known well enough, and no launch of it finds it.
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
  std::uint32_t grant_ = 0;  // counts them; a launch that has another one's number leaves by the device
  bool is_granted_ = false;
  std::uint32_t begun_ = 0;       // since the last fold, as is what follows
  std::uint32_t left_kinds_ = 0;  // a bit for each
  std::uint64_t folded_ns_ = 0;   // of what is not marked
  std::uint64_t last_ns_ = 0;
  std::uint64_t promised_ns_ = 0;  // of the window's room, and not folded
  std::uint32_t known_kinds_ = 0;  // likewise, of all that there are
  Terms terms_;
  std::array<Kind, std::size_t{1} << kKindBits> kinds_;
};

// The accounts of a device.
class StreamAccounts {
 public:
  static constexpr std::size_t kAccounts = 64;
  // Both outlive it.
  StreamAccounts(const Captures* captures, const Deadlines* deadlines) : captures_(captures), deadlines_(deadlines) {}

  static constexpr std::uintptr_t kNobody = 0;

  // The stream as an account's owner; kNobody: it can have none. The legacy default stream goes by its other handle.
  static std::uintptr_t OwnerOf(const StreamKey& key) {
    if (key.thread != 0) return kNobody;
    return key.handle == nullptr ? kLegacyHandle : reinterpret_cast<std::uintptr_t>(key.handle);
  }

  // ---- a launch
  // Whether accounts may be used now: what is captured is marked by its own launches, and a deadline begins with one.
  bool AreOpen() const { return !captures_->Any() && !deadlines_->Any(); }
  // The account that `owner` has or had a moment ago; kAccounts: none.
  std::size_t Of(std::uintptr_t owner) const {
    const std::size_t first = PlaceOf(owner);
    for (std::size_t probe = 0; probe < kProbe; ++probe) {
      const std::size_t place = (first + probe) % kAccounts;
      // relaxed: a hint. The account's lock shows what is so.
      if (owners_[place].load(std::memory_order_relaxed) == owner) return place;
    }
    return kAccounts;
  }
  StreamAccount& At(std::size_t place) { return accounts_[place]; }

  // ---- under the device's lock
  bool IsGranted(std::size_t place) const { return (granted_ >> place & 1) != 0; }
  // A place for an account of `owner`, which has no grant; kAccounts: all that could be it are others'.
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
  // A bit for each account with a grant: nothing is in the others.
  std::uint64_t Granted() const { return granted_; }
  void FreeAll() {
    for (std::atomic<std::uintptr_t>& owner : owners_)
      owner.store(kNobody, std::memory_order_relaxed);  // relaxed: see Of
  }
  // The stream is gone; its account, without a grant, is free.
  void Free(std::uintptr_t owner) {
    if (const std::size_t place = Of(owner); place != kAccounts)
      owners_[place].store(kNobody, std::memory_order_relaxed);  // relaxed: see Of
  }

 private:
  static constexpr std::size_t kProbe = 4;
  static std::size_t PlaceOf(std::uintptr_t owner) {
    return static_cast<std::size_t>((owner * 0x9e3779b97f4a7c15ull) >> 58);
  }

  // Read by each launch, written when an account is made: apart from what launches write.
  alignas(128) const Captures* const captures_;
  const Deadlines* const deadlines_;
  std::array<std::atomic<std::uintptr_t>, kAccounts> owners_{};
  alignas(128) std::uint64_t granted_ = 0;
  std::array<StreamAccount, kAccounts> accounts_;
};

}  // namespace xschedd::shim
