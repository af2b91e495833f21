// What all policies have in common: who is open where, given each group's rank (priority, then the level that the
// policy says; standing.h).
//
//   - On each device only the highest rank among busy groups is open; those of one rank run together, kept to their
//     shares (share.h) where the policy says so.
//   - A group that does not gain by it holds nobody (holders.h): the others run beside it, and it takes no turns with
//     them.
//   - A group opens and closes as one: it is open only if nobody of higher rank is busy on any device where it is busy.
//     Groups are admitted in order of rank over all devices at once, and one that is held claims nothing: two groups
//     that need two devices never hold one each, and no device is kept idle for a group that cannot run.
//   - Idle groups are shut out, too, where they would be held if they were busy: their first launch then waits.
//   - Everybody who can be overtaken by an attached group has a background window, whether that one is busy or not: the
//     hardware queues must be shallow when it arrives. Whom it would hold share one window and, where the device has a
//     limit, take turns; whom it would let run beside it have a window each and take none.
//   - A group that has had no work for kAwayNs leaves those below wider windows (kAwayMode) until it has some again:
//   the
//     first launch after such a time may wait for one of these, and nobody pays all day for a program that is asleep.
//     `strict` keeps the narrow ones.
//   - A device is untracked where no rank can differ and nobody is kept to a share. Groups that an administrator holds
//     count as not attached.
// Linger, guard, turns and windows: docs/explanation/policies.md.
//
// Cost: O(n) in tenants and O(b log b) in busy groups; nothing is allocated once the scratch memory has its size.
// Thread rule: pure in meaning; an object has one user.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <vector>

#include "daemon/policy/guard.h"
#include "daemon/policy/holders.h"
#include "daemon/policy/roster.h"
#include "daemon/policy/share.h"
#include "daemon/policy/standing.h"
#include "daemon/policy/turns.h"

namespace xschedd::policy {

// What makes a policy.
struct Rules {
  StandingFunction* standing = nullptr;    // nullptr: all of one priority stand alike
  Why why = Why::kPriority;                // for whom others of the same priority are held
  Share::Use share = Share::Use::kNobody;  // among those of one rank
};

class Arbiter {
 public:
  // Overwrites `decision`, whose memory is used again.
  void Decide(const State& state, const Rules& rules, std::uint64_t now_ns, Decision& decision);

 private:
  using Mode = BenefitMemory::Mode;
  static constexpr std::uint32_t kNobody = ~0u;
  // Whoever had work within this time counts among the others of a more important group, and as active.
  static constexpr std::uint64_t kRecentNs = kNsPerS;
  static constexpr std::uint64_t kAwayNs = 10 * kNsPerS;
  // On an H200 its windows cost those below nothing, or little (docs/explanation/performance.md).
  static constexpr Mode kAwayMode = Mode::kBesideWide;

  struct Rank {
    int priority = std::numeric_limits<int>::min();
    std::int64_t level = kLast;
    auto operator<=>(const Rank&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
  };

  struct LowClient {
    int priority = std::numeric_limits<int>::max();
    std::uint64_t client = 0;
    auto operator<=>(const LowClient&) const = default;  // NOLINT(modernize-use-nullptr): as above
  };
  struct DeviceView {
    // The two highest ranks that attached groups can come to; of two groups.
    Rank top;
    Rank second;
    std::uint32_t top_group = kNobody;
    std::uint32_t second_group = kNobody;
    int bottom_priority = std::numeric_limits<int>::max();
    bool ranked = false;
    int lowest_busy = std::numeric_limits<int>::max();  // the lowest priority that is busy here
    // The least important clients that have work here, or have just had some; ascending.
    std::array<LowClient, Benefit::kMostOthers> lowest;
    // Set as groups are admitted: the rank that has the device, and for whom others are told to wait.
    Rank claim;
    std::uint64_t claimant = 0;  // 0: nobody has it
    bool claim_lingers = false;
    bool awaited = false;                   // a group waits for a turn here
    std::uint64_t turn_client = 0;          // for whom others wait for their turn
    std::uint32_t counted_group = kNobody;  // the one that was added last to groups_in_turn
    std::uint32_t limit = 0;                // of groups in turn; 0: none
    std::uint32_t groups_in_turn = 0;       // admitted, and take turns
    std::uint32_t next_in_turn = 0;         // of next_rank, and wait for a turn on another device, too
    Rank next_rank;
    std::uint32_t next_group = kNobody;    // the one that was added last to next_in_turn
    std::uint32_t background_clients = 0;  // busy, open and can be overtaken: these divide its window
    std::uint32_t top_clients = 0;         // busy, open and cannot: likewise
    // The highest rank of an attached group, by its mode: what that means for those below (AllowanceOf).
    std::array<Rank, BenefitMemory::kModes> by_mode;
    std::array<Rank, BenefitMemory::kModes> by_mode_not_away;  // likewise, of those that are not away
    bool can_be_held = false;  // somebody attached is below one that holds whenever it is busy
    // The highest rank among attached groups that have work here, or have just had some, and of those of that rank the
    // mode that costs those below most.
    Rank active;
    Mode active_mode = kCheapest;
    std::uint64_t active_until_ns = kNever;  // when the last of that rank has had none for kRecentNs
    // Of those below, while none of that rank holds: the first group with work lately, and whether there is another.
    std::uint32_t first_beside = kNobody;
    bool several_beside = false;
    // The most important one that is busy and holds nobody.
    int beside = std::numeric_limits<int>::min();  // its priority
    std::uint64_t beside_client = 0;
  };

  struct GroupView {
    Rank rank;
    bool keeps_turn = false;              // has just become idle in its turn
    std::uint64_t next_look_ns = kNever;  // of its standing
    bool busy = false;
    bool present = false;  // busy, or lingers
    bool tracked = false;
    Why blocked = Why::kOpen;  // kOpen: admitted
    std::uint64_t blocked_for = 0;
  };

  // Of those that want a device now, in the order in which they are admitted.
  struct Place {
    Rank rank;
    double share = 0;        // of who is kept to a share: these have an order of their own; infinite: it is not
    std::uint64_t turn = 0;  // whose turn it is, then who had the last one longest ago
    std::uint32_t group = 0;
  };

  void Survey(const Rules& rules);
  void Attach(std::uint32_t group, Rank potential, bool ranked);
  void FindTracked();
  void Remember(std::uint32_t group);
  void Forget(std::uint32_t group);
  void FindHolders();
  void Order();
  void Interleave();
  void Admit(std::uint32_t group);
  void WaitForClaims(std::uint32_t group);
  void WaitForTurn(std::uint32_t group);
  void SpeakFor(std::uint32_t group);
  void Claim(std::uint32_t group);
  void ClaimDevice(std::uint32_t tenant, bool lingers);
  void FinishShares();
  void WatchTurns(std::uint32_t group);
  bool OthersWork(std::uint32_t group, bool where_busy) const;
  Others OthersBelow(std::uint32_t group) const;
  void NoteBenefits();
  void FindAwaited();
  void CountWindows();
  Gate GateOf(std::uint32_t tenant) const;
  void NoteMode(const Tenant& tenant, Mode mode);
  void NoteActive(const Tenant& tenant, Mode mode);
  void CountBeside(const Tenant& tenant);
  std::uint32_t SliceFor(std::uint32_t tenant, const Gate& gate) const;
  Why WhyClaimed(const DeviceView& device, const Rank& rank) const;
  std::uint32_t WindowOf(std::uint32_t tenant, std::uint32_t& floor) const;

  bool FindOvertaken(const Tenant& tenant) const;
  bool CanBeOvertaken(std::uint32_t tenant) const { return overtaken_[tenant] != 0; }
  // Somebody attached would hold it whenever he is busy.
  bool CanBeHeld(std::uint32_t tenant) const {
    const Tenant& own = state_->tenants[tenant];
    return CanBeOvertaken(tenant) && (!holders_.Measures() || StrictestAbove(devices_[own.device].by_mode,
                                                                             groups_[own.group].rank) == Mode::kHeld);
  }
  // Of groups of a higher rank, the mode that costs those below most.
  static Mode StrictestAbove(const std::array<Rank, BenefitMemory::kModes>& by_mode, const Rank& rank) {
    const auto found =
        std::find_if(by_mode.begin(), by_mode.end(), [&rank](const Rank& above) { return rank < above; });
    return found == by_mode.end() ? kCheapest : static_cast<Mode>(found - by_mode.begin());
  }
  // Which mode decides the window of who has this rank.
  Mode ModeOfWindow(const DeviceView& device, const Rank& rank) const {
    if (!holders_.Measures()) return Mode::kHeld;
    return std::max(StrictestAbove(device.by_mode, rank),
                    std::min(StrictestAbove(device.by_mode_not_away, rank), kAwayMode));
  }
  // Those below run beside it for the better part: its pace is what counts, and in turns it would wait for theirs.
  bool LetsOthersRun(std::uint32_t tenant) const {
    const Tenant& own = state_->tenants[tenant];
    return holders_.ModeOf(own.group) != BenefitMemory::Mode::kHeld &&
           groups_[own.group].rank.priority > devices_[own.device].bottom_priority;
  }
  // Who can be held less than always, or by nobody, takes none. Sharers do: where a device gives processes time slices,
  // each of two side by side is charged for the other's.
  bool TakesTurns(std::uint32_t tenant) const {
    return (CanBeHeld(tenant) && !LetsOthersRun(tenant)) || share_.KeepsTenant(tenant);
  }
  // The most important one that has work here, or has just had some, does not hold it throughout.
  bool RunsBeside(const Tenant& tenant) const {
    const DeviceView& device = devices_[tenant.device];
    return groups_[tenant.group].rank < device.active && device.active_mode != Mode::kHeld;
  }
  // With short ones where several have work in flight none of these gets on (slices.h).
  bool HasSlices(const DeviceView& device) const { return state_->settings.time_slices && device.limit == 1; }
  bool IsFull(const DeviceView& device) const { return device.limit != 0 && device.groups_in_turn >= device.limit; }
  // Whether there is room only until those who come before a group of this rank have all their devices.
  bool IsSpokenFor(const DeviceView& device, const Rank& rank) const {
    return device.limit != 0 && device.next_rank == rank && device.groups_in_turn + device.next_in_turn >= device.limit;
  }
  bool IsMixed(const DeviceView& device) const;
  bool IsRecent(const Tenant& tenant) const {
    return tenant.busy || (tenant.idle_since_ns != 0 && now_ns_ - tenant.idle_since_ns < kRecentNs);
  }
  // A strict one never is: its device is to be ready for it at any time.
  bool IsAway(const Tenant& tenant) const {
    return !tenant.busy && holders_.Measures(tenant.group) && now_ns_ - tenant.idle_since_ns >= kAwayNs;
  }
  bool Lingers(const Tenant& tenant) const {
    return !tenant.busy && tenant.idle_since_ns != 0 && LingerEnd(tenant) > now_ns_;
  }
  std::uint64_t LingerEnd(const Tenant& tenant) const {
    const bool waits = IsWhileItWaits(state_->groups[tenant.group].memory.benefit.mode);
    const std::uint64_t linger_ns = state_->settings.linger_us * kNsPerUs;
    return tenant.idle_since_ns + (waits ? std::max(linger_ns, Benefit::kLingerNs) : linger_ns);
  }
  // Whoever synchronises after each step keeps its turn from one to the next, or it would wait for everybody's turn
  // each time.
  std::uint64_t TurnKeptUntil(const Tenant& tenant) const {
    return tenant.idle_since_ns == 0 ? 0 : tenant.idle_since_ns + 2 * kNsPerUs * state_->settings.linger_us;
  }
  bool KeepsTurn(const Tenant& tenant) const {
    return groups_[tenant.group].keeps_turn && TurnKeptUntil(tenant) > now_ns_;
  }
  bool IsInTurnOn(std::uint32_t group, std::uint32_t device) const;
  void LookAt(std::uint64_t time_ns) { decision_->next_look_ns = std::min(decision_->next_look_ns, time_ns); }

  const State* state_ = nullptr;
  Decision* decision_ = nullptr;
  std::uint64_t now_ns_ = 0;
  Why why_ = Why::kPriority;
  Guard guard_;
  Holders holders_;
  Turns turns_{0, 0};
  Roster roster_;
  Share share_;
  std::vector<DeviceView> devices_;
  std::vector<GroupView> groups_;
  std::vector<Place> order_;
  std::vector<Place> interleaved_;
  std::vector<std::uint64_t> awaited_;   // clients, each once
  std::vector<std::uint8_t> overtaken_;  // by tenant: somebody attached to its device can come before it
};

}  // namespace xschedd::policy
