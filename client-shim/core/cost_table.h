// How long each kind of launch takes on the device: its cost. Two sources:
//
//   timed   the device's own time stamps of one launch: its duration, whatever else the device did. A moving average,
//           which jumps when a kind has changed for good (a kernel whose duration depends on its arguments)
//   spans   marker to marker on one stream, for kinds that are never timed. A span also contains the time for which the
//           work waited for other processes. So it is an upper bound, and the shortest is the cost: one span while no
//           other process ran is enough. If a kind now takes longer, the cost follows within seconds if the spans agree
//           with each other. If they scatter, the work waits for others, and the old cost is kept for half a minute
//
// A kind that was never launched before, or has not settled yet, has an estimated cost: that of the same function with
// another grid, else the average of all launches, as long as such estimates prove right. Without estimates, a program
// whose every step has a new grid would stall between steps.
//
// The table is bounded: the least recently launched kind makes room.
// Thread rule: guarded by its device's lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "client-shim/core/fibonacci_hash.h"
#include "client-shim/core/launch_mix.h"

namespace xschedd::shim {

class CostTable {
 public:
  // The result of a look-up, so that Launched needs no second one. By then the place may hold another kind.
  struct Known {
    std::uint64_t cost_ns = 0;  // as of CostNs
    std::uint16_t place = 0;
  };
  Known CostOf(LaunchKey key) const {
    const std::size_t place = FindPlace(key);
    return place == kNowhere ? Known{} : Known{entries_[place].cost_ns, static_cast<std::uint16_t>(place)};
  }

  // Counts changes of what CostOf, IsSettled and WantsTiming say.
  std::uint64_t Changes() const { return changes_; }

  // Nanoseconds of device time of one launch; 0: unknown.
  std::uint64_t CostNs(LaunchKey key) const {
    const Entry* entry = Find(key);
    return entry != nullptr ? entry->cost_ns : 0;
  }

  // The same or, if unknown, an estimate: the cost of `function` (0: unknown) with another grid, else `average_ns` (0:
  // unknown). 0: unknown, or estimates by the average have not proved right here.
  std::uint64_t EstimatedCostNs(LaunchKey key, LaunchKey function, std::uint64_t average_ns) const {
    const std::uint64_t known = CostNs(key);
    return known != 0 || key == 0 ? known : EstimateCost(function, average_ns);
  }

  // Of all launches of a mix together; 0 if one of them cannot be estimated.
  std::uint64_t EstimatedCostNs(const LaunchMix& mix) const {
    if (!mix.is_complete) return 0;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < mix.kinds; ++i) {
      const Entry* entry = Find(mix.parts[i].key);
      if (entry == nullptr) return 0;
      const std::uint64_t cost = EstimatedCostNs(entry->key, entry->function, entry->average_ns);
      if (cost == 0) return 0;
      sum += cost * mix.parts[i].launches;
    }
    return sum;
  }

  // The cost if it is reliable: a kind that is being timed needs two stamps that agree.
  std::uint64_t SettledCostNs(LaunchKey key) const {
    const Entry* entry = Find(key);
    return entry != nullptr && IsSettled(*entry) ? entry->cost_ns : 0;
  }
  // Whether the cost that CostOf found at `place` is reliable.
  bool IsSettled(std::uint16_t place) const { return IsSettled(entries_[place]); }

  // Of all launches of a mix together; 0 if one of them is not reliable.
  std::uint64_t SettledCostNs(const LaunchMix& mix) const {
    if (!mix.is_complete) return 0;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < mix.kinds; ++i) {
      const std::uint64_t cost = SettledCostNs(mix.parts[i].key);
      if (cost == 0) return 0;
      sum += cost * mix.parts[i].launches;
    }
    return sum;
  }

  // Launches of `key` succeeded. `average_ns`: of all launches at that time. `place`: where CostOf found it.
  void Launched(LaunchKey key, LaunchKey function = 0, std::uint64_t average_ns = 0, std::uint16_t place = 0,
                std::uint32_t launches = 1) {
    if (key == 0) return;
    Entry* entry = entries_[place].key == key ? &entries_[place] : FindOrAdd(key);
    entry->function = function;
    if (entry->cost_ns == 0) entry->average_ns = average_ns;
    entry->used = ++clock_;
    entry->launches += launches;
  }

  // Whether the next launch of `key` should be timed. Never before a plain launch of it has succeeded, so that a launch
  // that fails does so as it would without the shim. `is_marked`: a marker is due behind it anyway.
  bool IsTimingDue(LaunchKey key, std::uint64_t now_ns, bool is_marked) const {
    const Entry* entry = Find(key);
    if (entry == nullptr || entry->launches == 0) return false;
    if (entry->chosen < kFirstTimed) return true;
    if (entry->is_suspect && entry->launches - entry->timed_at >= entry->suspicion) return true;
    return is_marked && now_ns >= entry->timed_at_ns + kTimingIntervalNs;
  }
  // Whether that may be so, without a marker being due, for the kind that CostOf found at `place`.
  bool WantsTiming(std::uint16_t place) const {
    return entries_[place].chosen < kFirstTimed || entries_[place].is_suspect;
  }
  void ChosenForTiming(LaunchKey key, std::uint64_t now_ns) {
    Entry* entry = FindOrAdd(key);
    if (entry == nullptr) return;
    ++changes_;
    if (entry->chosen < kMaxChosen) ++entry->chosen;
    entry->timed_at = entry->launches;
    entry->timed_at_ns = now_ns;
  }

  void AddTimed(LaunchKey key, std::uint64_t ns) {
    Entry* entry = FindOrAdd(key);
    if (entry == nullptr) return;
    ns = std::max<std::uint64_t>(ns, 1);
    ++changes_;
    entry->is_suspect = false;
    if (entry->timed == 0) {
      SetCost(entry, ns);
      entry->timed = 1;
      return;
    }
    const bool is_misfit = ns > 2 * entry->cost_ns || 2 * ns < entry->cost_ns;
    entry->misfits = is_misfit ? entry->misfits + 1 : 0;
    // Beside other processes spans are always too long. After a false suspicion, the next one waits longer.
    entry->suspicion = is_misfit ? kFirstSuspicion : std::min(2 * entry->suspicion, kLastSuspicion);
    if (entry->misfits >= kMisfitsOfAChange) {
      SetCost(entry, ns);
      entry->timed = 1;
      entry->misfits = 0;
      return;
    }
    entry->timed = std::min(entry->timed + 1, kSmoothing);
    SetCost(entry, Towards(entry->cost_ns, ns, entry->timed));
  }

  // A batch of `mix` was settled within `span_ns` of its stream's time, at `now_ns` of any clock that does not go back.
  void AddSpan(const LaunchMix& mix, std::uint64_t span_ns, std::uint64_t now_ns) {
    std::uint64_t known = 0, untimed = 0, unknown_launches = 0;
    bool has_untimed = false;
    for (std::uint32_t i = 0; i < mix.kinds; ++i) {
      const Entry* entry = FindOrAdd(mix.parts[i].key);
      if (entry == nullptr) return;
      const std::uint64_t cost = entry->cost_ns * mix.parts[i].launches;
      known += cost;
      if (entry->timed > 0) continue;
      has_untimed = true;
      if (entry->cost_ns == 0) unknown_launches += mix.parts[i].launches;
      untimed += cost;
    }
    if (!mix.is_complete) return;  // the rest of the span cannot be attributed
    const bool is_off = span_ns > known + known / 2 + kMarkerSlackNs || span_ns + span_ns / 3 < known;
    for (std::uint32_t i = 0; i < mix.kinds && is_off; ++i)
      changes_ += std::exchange(FindOrAdd(mix.parts[i].key)->is_suspect, true) ? 0 : 1;
    if (!has_untimed) return;
    const std::uint64_t timed = known - untimed;
    const std::uint64_t rest = span_ns > timed ? span_ns - timed : 1;
    for (std::uint32_t i = 0; i < mix.kinds; ++i) {
      Entry* entry = FindOrAdd(mix.parts[i].key);
      if (entry->timed > 0) continue;
      if (unknown_launches > 0) {
        if (entry->cost_ns == 0) AddBound(entry, (rest > untimed ? rest - untimed : 1) / unknown_launches, now_ns);
      } else {
        const auto bound = static_cast<std::uint64_t>(static_cast<double>(entry->cost_ns) * static_cast<double>(rest) /
                                                      static_cast<double>(std::max<std::uint64_t>(untimed, 1)));
        AddBound(entry, bound, now_ns);
      }
    }
  }

  // No stamps will come: from now on all costs are from spans.
  void GiveUpTiming() {
    if (!std::exchange(is_timing_, false)) return;
    ++changes_;
    for (Entry& entry : entries_)
      entry.timed = 0;
  }

  // Whether some cost has changed by more than a quarter since the last TakeJump.
  bool HasJumped() const { return has_jumped_; }
  bool TakeJump() { return has_jumped_ && std::exchange(has_jumped_, false); }

 private:
  static constexpr std::size_t kEntries = 512;  // a power of two
  static constexpr std::size_t kProbe = 8;
  static constexpr std::uint32_t kMisfitsOfAChange = 2;  // in a row: the kind has changed
  static constexpr std::uint32_t kFirstTimed = 3;        // the first launches of a kind that are timed
  static constexpr std::uint32_t kSmoothing = 8;
  static constexpr std::uint32_t kFirstSuspicion = 3;
  static constexpr std::uint32_t kLastSuspicion = 96;
  static constexpr std::uint32_t kMaxChosen = 1000;
  static constexpr std::uint64_t kTimingIntervalNs = 2'000'000;
  // Bounds are evaluated together when this time is over and there are this many.
  static constexpr std::uint64_t kBoundsNs = 2'000'000'000;
  static constexpr std::uint32_t kBounds = 16;
  // How long bounds that scatter do not replace an earlier cost.
  static constexpr std::uint64_t kKeptNs = 30'000'000'000;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  // A span begins and ends at a marker, which takes the device a few microseconds.
  static constexpr std::uint64_t kMarkerSlackNs = 20'000;

  static constexpr std::size_t kFunctions = 256;  // a power of two
  // Estimates by the average are used once this many in a row were right.
  static constexpr std::uint32_t kMinCorrectEstimates = 4;
  // An estimate is wrong if the cost is more than this many times as long, and longer than any window minds.
  static constexpr std::uint64_t kWrongFactor = 4;
  static constexpr std::uint64_t kHarmlessNs = 50'000;

  struct alignas(64) Entry {  // begins on a cache line of its own
    LaunchKey key = 0;
    LaunchKey function = 0;
    std::uint64_t average_ns = 0;  // of all launches before its cost was known
    std::uint64_t cost_ns = 0;
    std::uint64_t used = 0;
    std::uint64_t timed_at_ns = 0;
    // The bounds since `bounds_since_ns`: their minimum, sum and number.
    std::uint64_t bounds_since_ns = 0;
    std::uint64_t least_ns = kNone;
    std::uint64_t bounds_sum_ns = 0;
    std::uint32_t bounds = 0;
    std::uint32_t timed = 0;     // time stamps that cost_ns comes from, up to kSmoothing; 0: it comes from spans
    std::uint32_t chosen = 0;    // launches chosen to be timed
    std::uint32_t launches = 0;  // with success, modulo 2^32
    std::uint32_t timed_at = 0;  // `launches` when one was last chosen to be timed
    std::uint32_t misfits = 0;   // time stamps in a row that were far from the cost
    std::uint32_t suspicion = kFirstSuspicion;  // launches to wait before a suspect is timed
    // The minimum of the bounds evaluated before, and when it was set.
    std::uint64_t kept_ns = kNone;
    std::uint64_t kept_at_ns = 0;
    bool is_suspect = false;  // spans no longer fit the cost
  };

  // The cost of a function with some grid. Functions with the same place replace each other.
  struct Function {
    LaunchKey key = 0;
    std::uint64_t cost_ns = 0;
  };

  // A function's cost is used without proof: with another grid it nearly always takes the same order of time.
  std::uint64_t EstimateCost(LaunchKey function, std::uint64_t average_ns) const {
    const Function& known = functions_[Place(function, 0) & (kFunctions - 1)];
    if (function != 0 && known.key == function) return known.cost_ns;
    return correct_estimates_ >= kMinCorrectEstimates ? average_ns : 0;
  }
  void Learn(const Entry& entry, std::uint64_t ns) {
    if (entry.cost_ns == 0 && entry.average_ns != 0) {
      const bool is_wrong = ns > kWrongFactor * entry.average_ns && ns > kHarmlessNs;
      correct_estimates_ = is_wrong ? 0 : std::min(correct_estimates_ + 1, kMinCorrectEstimates);
    }
    if (entry.function == 0) return;
    Function& function = functions_[Place(entry.function, 0) & (kFunctions - 1)];
    // Falls slowly, because the longest grid counts: an estimate that is too long only leaves the window less full.
    const bool is_same = function.key == entry.function;
    function =
        Function{entry.function, is_same && ns < function.cost_ns ? Towards(function.cost_ns, ns, kSmoothing) : ns};
  }

  void SetCost(Entry* entry, std::uint64_t ns) {
    ns = std::max<std::uint64_t>(ns, 1);
    Learn(*entry, ns);
    const std::uint64_t change = ns > entry->cost_ns ? ns - entry->cost_ns : entry->cost_ns - ns;
    has_jumped_ = has_jumped_ || 4 * change > entry->cost_ns;
    changes_ += change != 0 ? 1 : 0;
    entry->cost_ns = ns;
  }
  // A launch of this kind took at most `ns`.
  void AddBound(Entry* entry, std::uint64_t ns, std::uint64_t now_ns) {
    if (entry->bounds >= kBounds && now_ns - entry->bounds_since_ns >= kBoundsNs) {
      const bool do_agree = entry->bounds_sum_ns / entry->bounds <= entry->least_ns + entry->least_ns / 8;
      if (do_agree || entry->least_ns - entry->least_ns / 16 <= entry->kept_ns ||
          now_ns - entry->kept_at_ns >= kKeptNs) {
        entry->kept_ns = entry->least_ns;
        entry->kept_at_ns = now_ns;
      }
      entry->bounds = 0;
    }
    if (entry->bounds == 0) {
      entry->bounds_since_ns = now_ns;
      entry->least_ns = kNone;
      entry->bounds_sum_ns = 0;
    }
    ++entry->bounds;
    entry->bounds_sum_ns += ns;
    entry->least_ns = std::min(entry->least_ns, ns);
    SetCost(entry, std::min(entry->least_ns, entry->kept_ns));
  }
  static std::uint64_t Towards(std::uint64_t from, std::uint64_t to, std::uint32_t steps) {
    return to > from ? from + (to - from) / steps : from - (from - to) / steps;
  }
  static std::size_t Place(LaunchKey key, std::size_t probe) { return FibonacciHash<32>(key) + probe; }
  bool IsSettled(const Entry& entry) const { return !is_timing_ || entry.chosen == 0 || entry.timed >= 2; }
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  std::size_t FindPlace(LaunchKey key) const {
    if (key == 0) return kNowhere;
    for (std::size_t probe = 0; probe < kProbe; ++probe) {
      const std::size_t place = Place(key, probe) & (kEntries - 1);
      if (entries_[place].key == key) return place;
    }
    return kNowhere;
  }
  const Entry* Find(LaunchKey key) const {
    const std::size_t place = FindPlace(key);
    return place == kNowhere ? nullptr : &entries_[place];
  }
  Entry* FindOrAdd(LaunchKey key) {
    if (key == 0) return nullptr;
    Entry* found = const_cast<Entry*>(Find(key));
    return found != nullptr ? found : Add(key);
  }
  [[gnu::noinline]] Entry* Add(LaunchKey key) {
    Entry* oldest = nullptr;
    for (std::size_t probe = 0; probe < kProbe; ++probe) {
      Entry& entry = entries_[Place(key, probe) & (kEntries - 1)];
      if (oldest == nullptr || entry.used < oldest->used) oldest = &entry;
    }
    ++changes_;
    *oldest = Entry{};
    oldest->key = key;
    oldest->used = ++clock_;
    return oldest;
  }

  std::array<Entry, kEntries> entries_{};
  std::array<Function, kFunctions> functions_{};
  std::uint32_t correct_estimates_ = 0;  // by the average, in a row
  std::uint64_t clock_ = 0;
  std::uint64_t changes_ = 0;
  bool has_jumped_ = false;
  bool is_timing_ = true;
};

}  // namespace xschedd::shim
