// Start-time fair queueing by principal: the next turn goes to the user that has had the least so far, and among that
// user's places to the one that has had the least. A principal that asks for much delays only itself, and many places
// give a user no more. Newcomers go first; idle time earns no credit. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/registry/principal.h"

namespace xschedd {

// The order of waiting keys: the one that has had the least is next.
template <typename Key>
class FairOrder {
 public:
  static constexpr std::size_t kForgetAbove = 1024;

  bool IsEmpty() const { return order_.empty(); }
  bool Knows(const Key& key) const { return entries_.contains(key); }

  void Wait(const Key& key) {
    Entry& entry = entries_[key];
    if (entry.waits) return;
    entry.waits = true;
    entry.had = std::max(entry.had, floor_);
    order_.emplace(entry.had, key);
  }

  // Call it only if a key waits.
  Key First() {
    floor_ = order_.begin()->first;
    return order_.begin()->second;
  }

  // It waits no longer.
  void Leave(const Key& key) {
    Entry& entry = entries_[key];
    order_.erase({entry.had, key});
    entry.waits = false;
    if (entries_.size() > kForgetAbove) Forget();
  }

  // Adds to what it has had, in any unit.
  void Charge(const Key& key, std::uint64_t cost) {
    Entry& entry = entries_[key];
    if (entry.waits) order_.erase({entry.had, key});
    entry.had = std::max(entry.had, floor_) + cost;
    if (entry.waits) order_.emplace(entry.had, key);
  }

 private:
  struct Entry {
    std::uint64_t had = 0;
    bool waits = false;
  };

  // Forgets only those that would start at the floor again.
  void Forget() {
    std::erase_if(entries_, [this](const auto& entry) { return !entry.second.waits && entry.second.had <= floor_; });
  }

  std::map<Key, Entry> entries_;
  std::set<std::pair<std::uint64_t, Key>> order_;  // waiting keys, by how much each has had
  std::uint64_t floor_ = 0;                        // how much the key served last had had before
};

template <typename Item>
class FairTurns {
 public:
  bool IsEmpty() const { return order_.IsEmpty(); }

  void Add(const Principal& principal, Item item) {
    User& user = users_[principal.uid];
    user.waiting[principal.place].push_back(std::move(item));
    user.order.Wait(principal.place);
    order_.Wait(principal.uid);
  }

  // The next item and its principal; none: nothing waits. The items of each principal keep their order.
  std::optional<std::pair<Principal, Item>> Next() {
    if (order_.IsEmpty()) return std::nullopt;
    const std::uint32_t uid = order_.First();
    User& user = users_[uid];
    const std::string place = user.order.First();
    const auto items = user.waiting.find(place);
    std::pair<Principal, Item> next(Principal(uid, place), std::move(items->second.front()));
    items->second.pop_front();
    if (items->second.empty()) {
      user.waiting.erase(items);
      user.order.Leave(place);
    }
    if (user.waiting.empty()) order_.Leave(uid);
    if (users_.size() > FairOrder<std::uint32_t>::kForgetAbove) {
      std::erase_if(users_, [this](const auto& entry) { return !order_.Knows(entry.first); });
    }
    return next;
  }

  void Charge(const Principal& principal, std::uint64_t cost) {
    order_.Charge(principal.uid, cost);
    users_[principal.uid].order.Charge(principal.place, cost);
  }

 private:
  struct User {
    FairOrder<std::string> order;                     // of its places
    std::map<std::string, std::deque<Item>> waiting;  // by place; none is empty
  };

  FairOrder<std::uint32_t> order_;
  std::map<std::uint32_t, User> users_;
};

}  // namespace xschedd
