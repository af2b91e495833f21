// Weighted shares of GPU time inside a priority class, by holding only who is ahead of its share: all others run side
// by side, so that the device stays concurrent.
//
//   - Each group has a virtual time: GPU time / weight (service.h says which GPU time). Whoever is ahead of the one
//     furthest behind on a device of both by more than share_slack_us of its own GPU time is held until it is ahead no
//     longer. The one furthest behind is never held, so of two gangs that need two devices one always runs on both.
//   - Compared are groups of one class that have work (or had until linger_us ago) and that nothing else holds.
//   - Whoever has been idle for no more than share_slack_us keeps its virtual time: a tenant that synchronises
//     after each step is one that runs all the time. Whoever was idle for longer starts level with the one furthest
//     behind: no credit for idleness, no punishment for what it had while nobody else wanted it.
//   - Whoever is held for a higher rank keeps its virtual time, so that a class that runs in the gaps of another keeps
//     its shares from gap to gap; but it falls behind those of its class that run meanwhile by no more than the slack.
//   - Work conservation: "busy" without using the device must not hold others for ever. Where somebody waits, time of
//     the device that nobody is measured to have used is charged to those who are open there, divided by weight, once
//     there are kPatience slacks of it. So every hold ends. Measurements come late and in lumps, after the kernels in
//     flight, which may be the held one's: less than that proves nothing, and charging it would count it twice.
//   - No lead counts for more than kMostLead slacks. Two groups that never met before on a device may have
//     virtual times that say nothing about each other.
// Which groups are kept to their shares: Use. Thread rule: pure in meaning; an object has one user.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/policy/roster.h"
#include "daemon/policy/types.h"

namespace xschedd::policy {

class Share {
 public:
  enum class Use {
    kNobody,
    kUnequalWeights,  // groups of one class on a device whose weights differ
    kAlways,          // all groups of one class on a device, if there are several
  };

  // The calls of one decision, in this order. `state` and `roster` must outlive them.
  // 1. Who is kept, and what has been used since the last decision.
  void Begin(const State& state, const Roster& roster, Use use, std::uint64_t now_ns);

  bool KeepsAny() const { return active_; }
  // Whether the group is kept to its share on one of its devices.
  bool Keeps(std::uint32_t group) const { return active_ && groups_[group].kept; }
  bool KeepsTenant(std::uint32_t tenant) const { return active_ && classes_[class_of_[tenant]].kept; }
  // Groups of one class must be admitted in this order, smallest first. Who has a turn on a device that allows only so
  // many (turns.h) keeps its place until it is ahead by the slack.
  double Order(std::uint32_t group, bool has_turn) const;

  // 2. For each busy group in order, if nothing else holds it: whether its share does; if nothing does, Admit.
  bool MustWait(std::uint32_t group) { return groups_[group].busy && IsAhead(group); }
  // For whom, after MustWait or Finish.
  std::uint64_t HeldFor(std::uint32_t group) const { return groups_[group].held_for; }
  void Admit(std::uint32_t group);

  // 3. After the last one: what to remember of it, if `blocked` is why it is held. `next_look_ns` is brought forward to
  //    when its case can change.
  void Finish(std::uint32_t group, Why blocked, ShareMemory& next, std::uint64_t& next_look_ns);
  // Afterwards: how much the tenant may have in flight, in ns: what its group may still be ahead, since a gate that is
  // shut too late is no use; nothing said: nobody else competes there, nor will go on in a moment.
  std::optional<std::uint64_t> Room(std::uint32_t tenant) const;
  // And whether the group, idle where it is kept to its share, would have to wait if it became busy there.
  bool WouldWait(std::uint32_t group) const { return !groups_[group].busy && groups_[group].ahead; }

 private:
  static constexpr std::uint32_t kNone = ~0u;

  // A priority class on a device.
  struct Class {
    int priority = 0;
    std::uint32_t next = kNone;  // the next class of the device
    std::uint32_t first_group = 0;
    std::uint32_t min_weight = 0;
    std::uint32_t max_weight = 0;
    bool several = false;
    bool kept = false;
    // Since the last decision:
    bool waited = false;            // somebody was held by its share, or for another's turn
    std::uint64_t used_ns = 0;      // by those who were open
    std::uint64_t open_weight = 0;  // of those who were open
    std::uint32_t weighed = kNone;  // the group that was added last
    // The least virtual times of those who compete since then, and of those who were blocked or away for a moment.
    std::optional<double> competing = std::nullopt;
    std::optional<double> others = std::nullopt;
    // Those admitted now: the two furthest behind.
    std::uint32_t last = kNone;
    std::uint32_t second_last = kNone;
    std::uint64_t last_client = 0;  // of `last`, for whom others are held
    // Of those away for a moment, likewise the least virtual time.
    std::optional<double> away = std::nullopt;
  };

  struct Member {
    bool kept = false;
    bool busy = false;     // has work where it is kept
    bool present = false;  // or had until a moment ago
    bool known = false;    // keeps its virtual time
    bool ahead = false;
    bool admitted = false;
    double virtual_ns = 0;
    std::uint64_t missed_ns = 0;
    std::uint64_t held_for = 0;
    std::uint64_t held_look_ns = 0;
  };

  bool Survey(Use use);
  bool IsAhead(std::uint32_t group);
  void CollectUse(std::uint32_t group);
  void Charge(std::uint32_t group);
  void Start(std::uint32_t group);
  void Refer(std::uint32_t group, std::optional<double> Class::*least);
  bool WasThere(const Tenant& tenant, const ShareMemory& memory) const;
  bool IsPresent(const Tenant& tenant) const;
  bool IsBehind(std::uint32_t group, std::uint32_t of) const;
  double Lead(std::uint32_t group, std::uint32_t of) const;
  Class& ClassOf(std::uint32_t tenant) { return classes_[class_of_[tenant]]; }
  const Class& ClassOf(std::uint32_t tenant) const { return classes_[class_of_[tenant]]; }

  const State* state_ = nullptr;
  const Roster* roster_ = nullptr;
  std::uint64_t now_ns_ = 0;
  std::uint64_t slack_ns_ = 0;
  bool active_ = false;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> first_class_;  // by device
  std::vector<std::uint32_t> class_of_;     // by tenant
  std::vector<std::uint8_t> present_;       // by tenant: has work, or had until a moment ago
  std::vector<Member> groups_;
};

}  // namespace xschedd::policy
