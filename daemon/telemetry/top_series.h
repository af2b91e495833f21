// Counts by key, of which the largest have a series of their own in the metrics and all others count together.
//
// A key has a series from its first count if there is room, or once it has counted more than twice as much as the one
// with the least, whose place it takes. What was counted in one place is never moved to another, so that no counter
// goes back: a key that loses its series counts with the others from then on, and goes on from its own last value if it
// gets it back. At most kMostKeys keys are remembered; the smallest without a series is forgotten for a new one. Thread
// rule: the daemon's one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace xschedd {

template <typename Key, std::size_t kParts>
class TopSeries {
 public:
  static constexpr std::size_t kMostKeys = 1'024;

  // Numbers that only grow. The first ranks the keys.
  using Parts = std::array<std::uint64_t, kParts>;

  explicit TopSeries(std::size_t most) : most_(most) {}

  void Add(const Key& key, const Parts& parts) {
    const auto [place, is_new] = counts_.try_emplace(key);
    Count& count = place->second;
    if (is_new) {
      if (counts_.size() > kMostKeys) Forget(key);
      if (series_ < most_) Begin(count);
    }
    AddTo(parts, count.all);
    AddTo(parts, count.has_series ? count.in_series : rest_);
  }

  // Decides which keys have a series from now on.
  void Choose() {
    for (std::size_t i = 0; i < most_; ++i) {
      Count* const most = Find(false, [](std::uint64_t a, std::uint64_t b) { return a > b; });
      if (most == nullptr) return;
      if (series_ >= most_) {
        Count* const least = Find(true, [](std::uint64_t a, std::uint64_t b) { return a < b; });
        if (most->all[0] <= 2 * least->all[0]) return;
        least->has_series = false;
        --series_;
      }
      Begin(*most);
    }
  }

  // `write` gets the key and the parts of each series.
  template <typename Write>
  void ForEach(const Write& write) const {
    for (const auto& [key, count] : counts_)
      if (count.has_series) write(key, count.in_series);
  }
  // What was counted for keys without one.
  const Parts& Rest() const { return rest_; }
  bool IsEmpty() const { return counts_.empty(); }

 private:
  struct Count {
    Parts all{};
    Parts in_series{};
    bool has_series = false;
  };

  static void AddTo(const Parts& from, Parts& to) {
    for (std::size_t i = 0; i < kParts; ++i)
      to[i] += from[i];
  }
  void Begin(Count& count) {
    count.has_series = true;
    ++series_;
  }
  // The first by `is_better` of those with or without a series; nullptr: there is none.
  template <typename IsBetter>
  Count* Find(bool has_series, const IsBetter& is_better) {
    Count* best = nullptr;
    for (auto& [key, count] : counts_) {
      if (count.has_series != has_series) continue;
      if (best == nullptr || is_better(count.all[0], best->all[0])) best = &count;
    }
    return best;
  }
  // One that is not `kept`. There are more keys than series.
  void Forget(const Key& kept) {
    auto least = counts_.end();
    for (auto one = counts_.begin(); one != counts_.end(); ++one) {
      if (one->second.has_series || one->first == kept) continue;
      if (least == counts_.end() || one->second.all[0] < least->second.all[0]) least = one;
    }
    counts_.erase(least);
  }

  std::size_t most_;
  std::size_t series_ = 0;
  std::map<Key, Count> counts_;
  Parts rest_{};
};

}  // namespace xschedd
