// Weighted shares of GPU time inside a priority class. Only a group ahead of its share is held: all others run side by
// side, so that the device stays concurrent.
//
//   - Owners first: where groups of several owners are of one class on a device, an owner counts with the greatest
//     weight of its groups that have work there, and that is divided among these by their weights. So the weight in
//     force of a group is smaller beside others of its owner (share_weights.cc), and two processes are no reason for
//     twice the GPU. Below, "weight" is the weight in force.
//   - Each group has a virtual time: GPU time (service.h) / weight. A group that leads the one furthest behind on a
//     common device by more than share_slack_us of its own GPU time is held until it leads no longer. The one furthest
//     behind is never held, so of two gangs that need two devices one always runs on both.
//   - Groups of one class are compared if they have work (or had until linger_us ago) and nothing else holds them.
//   - A group idle for no more than share_slack_us keeps its virtual time: a tenant that synchronises after each step
//     counts as one that always runs. After longer idleness it starts level with the one furthest behind: no credit for
//     idleness, no debt for GPU time that no other group wanted.
//   - A group held for a higher rank keeps its virtual time, so that a class that runs in another's gaps keeps its
//     shares from gap to gap; but it falls behind those of its class that run meanwhile by no more than the slack.
//   - "Busy" without using the device must not hold others for ever. While a group waits, device time that no group is
//     measured to have used is charged to the groups open there, by weight, once it exceeds kPatience slacks. So every
//     hold ends. Measurements come late and in lumps, after the kernels in flight, which may be the held group's: less
//     than that proves nothing, and charging it would count it twice.
//   - No lead counts for more than kMaxLead slacks: virtual times of groups that never met on a device may say nothing
//     about each other.
// Thread rule: pure but for scratch memory; one user per object.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/policy/owner_weight.h"
#include "daemon/policy/roster.h"
#include "daemon/policy/types.h"

namespace xschedd::policy {

class Share {
 public:
  enum class Use {
    kNobody,
    kUnequalWeights,  // groups of a class on a device, if their weights differ
    kAlways,          // all groups of a class on a device, if there are several
  };

  // The calls of one decision, in this order. `state` and `roster` must outlive them.
  // 1. Finds which groups are kept to a share, and charges what was used since the last decision.
  void Begin(const State& state, const Roster& roster, Use use, std::uint64_t now_ns);

  bool KeepsAny() const { return active_; }
  // Whether the group is kept to its share on one of its devices.
  bool Keeps(std::uint32_t group) const { return active_ && groups_[group].kept; }
  bool KeepsTenant(std::uint32_t tenant) const { return active_ && classes_[class_of_[tenant]].kept; }
  // Groups of one class must be admitted in this order, smallest first. A group in its turn (turns.h) keeps its place
  // until it is ahead by the slack.
  double Order(std::uint32_t group, bool has_turn) const;

  // 2. For each busy group in that order that nothing else holds: whether its share does. Admit it if nothing does.
  bool MustWait(std::uint32_t group) { return groups_[group].busy && IsAhead(group); }
  // The client it is held for, after MustWait or Finish.
  std::uint64_t HeldFor(std::uint32_t group) const { return groups_[group].held_for; }
  void Admit(std::uint32_t group);

  // 3. After the last Admit, for each kept group: what to remember. `blocked` is why it is held. Brings `next_look_ns`
  // forward to when that can change.
  void Finish(std::uint32_t group, Why blocked, ShareMemory& next, std::uint64_t& next_look_ns);
  // Afterwards: what the tenant may have in flight, in ns: no more than its group may still get ahead, or its gate
  // would shut too late. None: no other group competes there or is about to.
  std::optional<std::uint64_t> Room(std::uint32_t tenant) const;
  // Whether the group, idle where it is kept to its share, would be held if it became busy there.
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
    bool several_owners = false;
    bool kept = false;
    // While an owner is weighed: its first group, and what its groups with work here weigh.
    std::uint32_t weighed_owner = kNone;
    std::uint32_t counted = kNone;  // the last group that was added
    OwnerWeight owner = {};
    // Since the last decision:
    bool waited = false;            // a group was held by its share, or for another's turn
    std::uint64_t used_ns = 0;      // GPU time of all its groups
    std::uint64_t open_weight = 0;  // of groups that were open, in parts
    std::uint32_t weighed = kNone;  // the group last added to open_weight
    // The least virtual times of groups that competed, and of those that were blocked or briefly away.
    std::optional<double> competing = std::nullopt;
    std::optional<double> others = std::nullopt;
    // The two admitted groups furthest behind.
    std::uint32_t last = kNone;
    std::uint32_t second_last = kNone;
    std::uint64_t last_client = 0;  // of `last`; others are held for it
    // The least virtual time of groups that are briefly away now.
    std::optional<double> away = std::nullopt;
  };

  struct Member {
    bool kept = false;
    bool busy = false;     // has work where it is kept
    bool present = false;  // or had until linger_us ago
    bool known = false;    // keeps its virtual time
    bool ahead = false;
    bool admitted = false;
    std::uint64_t weight = 0;  // in force, in parts
    double virtual_ns = 0;
    std::uint64_t missed_ns = 0;
    std::uint64_t held_for = 0;
    std::uint64_t held_look_ns = 0;
  };

  // Weights in force are whole numbers of such parts, so that sums do not depend on the order.
  static constexpr std::uint64_t kWeightParts = 1'024;

  bool Survey(Use use);
  bool HaveOneOwner(std::uint32_t group, std::uint32_t other) const;
  void Weigh();
  void WeighOwner(std::uint32_t first);
  bool IsCountedIn(std::uint32_t group, std::uint32_t entry) const;
  double Weight(std::uint32_t group) const { return InWeights(groups_[group].weight); }
  // In force since the last decision.
  std::uint64_t WasParts(std::uint32_t group) const {
    const std::uint64_t was = state_->groups[group].memory.share.weight;
    return was != 0 ? was : groups_[group].weight;
  }
  static double InWeights(std::uint64_t parts) {
    return static_cast<double>(parts) / static_cast<double>(kWeightParts);
  }
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
  std::vector<std::uint8_t> present_;       // by tenant, as in Member
  std::vector<Member> groups_;
  std::vector<std::uint32_t> first_of_owner_;  // by owner: a group
  std::vector<std::uint32_t> next_of_owner_;   // by group: another one of its owner
};

}  // namespace xschedd::policy
