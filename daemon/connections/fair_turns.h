// Start-time fair queueing by user: the next turn goes to the user that has had the least so far. A user that asks for
// much delays only itself. Newcomers go first, and idle users save up nothing. Thread rule: one owner.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace xschedd {

template <typename Item>
class FairTurns {
 public:
  bool IsEmpty() const { return order_.empty(); }

  void Add(uid_t uid, Item item) {
    User& user = users_[uid];
    if (user.waiting.empty()) {
      user.had = std::max(user.had, floor_);
      order_.emplace(user.had, uid);
    }
    user.waiting.push_back(std::move(item));
  }

  // The next item and its user; none: nothing waits. Each user's items keep their order.
  std::optional<std::pair<uid_t, Item>> Next() {
    if (order_.empty()) return std::nullopt;
    const auto [had, uid] = *order_.begin();
    floor_ = had;
    User& user = users_[uid];
    std::pair<uid_t, Item> next(uid, std::move(user.waiting.front()));
    user.waiting.pop_front();
    if (user.waiting.empty()) order_.erase(order_.begin());
    if (users_.size() > kForgetAbove) Forget();
    return next;
  }

  // Adds to what the user has had, in whatever unit users are compared by.
  void Charge(uid_t uid, std::uint64_t cost) {
    User& user = users_[uid];
    const bool waits = !user.waiting.empty();
    if (waits) order_.erase({user.had, uid});
    user.had = std::max(user.had, floor_) + cost;
    if (waits) order_.emplace(user.had, uid);
  }

 private:
  static constexpr std::size_t kForgetAbove = 1024;

  struct User {
    std::uint64_t had = 0;
    std::deque<Item> waiting;
  };

  // Forgets only users that would start at the floor again.
  void Forget() {
    std::erase_if(users_,
                  [this](const auto& entry) { return entry.second.waiting.empty() && entry.second.had <= floor_; });
  }

  std::map<uid_t, User> users_;
  std::set<std::pair<std::uint64_t, uid_t>> order_;  // waiting users, by what they have had
  std::uint64_t floor_ = 0;                          // what the last user served had had before
};

}  // namespace xschedd
