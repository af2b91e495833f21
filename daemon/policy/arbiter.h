// Decides, for all policies, which clients are open on which devices. A group's rank is its priority, then the level
// that the policy gives it (standing.h).
//
//   - On each device only busy groups of the highest rank are open. They run together, kept to shares (share.h) where
//     the policy says so.
//   - A group that gains nothing by holding others lets them run (holders.h) and takes no turns with them.
//   - A group opens and closes as one: it is open only if no group of higher rank is busy on any device where it is
//     busy. Groups are admitted by rank over all devices at once, and a held group claims nothing. So two groups that
//     need two devices never hold one each, and no device is kept idle for a group that cannot run.
//   - An idle group's gate is shut where it would be held if busy, so that its first launch waits.
//   - A group that an attached one can overtake has a background window, even while that one is idle: the hardware
//     queues must be shallow when it arrives. Groups that it would hold whenever it is busy share one window and, where
//     the device has a limit, take turns. The others have what its mode allows (benefit.h) and take none.
//   - Once a group has had no work for kAwayNs, those below it have the windows of kAwayMode until it has work again.
//     Its first launch may wait for such a window, but a program that sleeps all day costs the others nothing. Below a
//     `strict` group the windows stay narrow.
//   - A group is untracked if, on all its devices, no rank can differ and it is kept to no share; or if those above it
//     gain nothing by holding it (arbiter_aside.cc). Groups on hold count as not attached.
// Linger, guard, turns and windows: docs/explanation/policies.md.
//
// Cost: O(n) in tenants and O(b log b) in busy groups; no allocation once scratch memory has its size. Thread rule:
// pure but for scratch memory; one user per object.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/policy/filling.h"
#include "daemon/policy/guard.h"
#include "daemon/policy/holders.h"
#include "daemon/policy/roster.h"
#include "daemon/policy/share.h"
#include "daemon/policy/standing.h"
#include "daemon/policy/turns.h"
#include "daemon/policy/waits.h"

namespace xschedd::policy {

// What makes a policy.
struct Rules {
  StandingFunction* standing = nullptr;    // nullptr: equal priorities are equal ranks
  UseFunction* use = nullptr;              // nullptr: standings do not depend on owners
  Why why = Why::kPriority;                // given to groups held for one of their own priority
  Share::Use share = Share::Use::kNobody;  // which groups of a rank are kept to shares
};

class Arbiter {
 public:
  // Overwrites `decision` and reuses its memory.
  void Decide(const State& state, const Rules& rules, std::uint64_t now_ns, Decision& decision);

 private:
  using Mode = BenefitMemory::Mode;
  static constexpr std::uint32_t kNobody = ~0u;
  // Sums of hashes differ for different sets of ids; sums of ids could be equal.
  static constexpr std::uint64_t HashOf(std::uint64_t id) {
    const std::uint64_t mixed = id * 0x9e3779b97f4a7c15ull;
    return (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93ull;
  }
  // A client with work within this time is active, and counts among the others of a more important group.
  static constexpr std::uint64_t kRecentNs = kNsPerS;
  static constexpr std::uint64_t kAwayNs = 10 * kNsPerS;
  // On an H200, its windows cost those below little or nothing (docs/explanation/performance.md).
  static constexpr Mode kAwayMode = Mode::kBesideWide;

  struct Rank {
    int priority = std::numeric_limits<int>::min();
    std::int64_t level = kLast;
    auto operator<=>(const Rank&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
  };

  // Counts the groups of the highest rank among those that are added, each once. The tenants of a group follow each
  // other.
  struct HighestRank {
    Rank rank;
    std::uint32_t count = 0;
    std::uint32_t last = kNobody;  // the last group that was counted
    // Whether it is counted, which it is not a second time.
    bool Add(std::uint32_t group, const Rank& its) {
      if (its < rank || last == group) return false;
      count = its == rank ? count + 1 : 1;
      rank = its;
      last = group;
      return true;
    }
  };

  struct LowClient {
    int priority = std::numeric_limits<int>::max();
    std::uint64_t client = 0;
    auto operator<=>(const LowClient&) const = default;  // NOLINT(modernize-use-nullptr): as above
  };
  // The strictest modes above a rank: of any group, and by by_mode_not_away; and the window that follows for those of
  // the rank.
  struct ModesAbove {
    bool is_known = false;
    Rank rank;
    Mode any = kCheapest;
    Mode not_away = kCheapest;
    std::uint32_t window_us = 0;  // 0: not known yet, as before windows are counted
    std::uint32_t window_floor = 0;
  };
  static constexpr std::array<int, BenefitMemory::kModes> kNoPriority = [] {
    std::array<int, BenefitMemory::kModes> none{};
    none.fill(std::numeric_limits<int>::min());
    return none;
  }();
  struct DeviceView {
    // The two highest ranks that attached groups can reach, and those groups.
    Rank top;
    Rank second;
    std::uint32_t top_group = kNobody;
    std::uint32_t second_group = kNobody;
    int bottom_priority = std::numeric_limits<int>::max();
    bool ranked = false;
    // By mode, the highest priority of an attached group with that answer (benefit.h).
    std::array<int, BenefitMemory::kModes> answers = kNoPriority;
    std::array<int, 2> lowest_busy = {std::numeric_limits<int>::max(),
                                      std::numeric_limits<int>::max()};  // the lowest busy clients' priorities
    // The least important clients with recent work here, ascending.
    std::array<LowClient, Benefit::kMaxOthers> lowest;
    // Set during admission: the rank that claims the device, and the client that others are held for.
    Rank claim;
    std::uint64_t claimant = 0;  // 0: unclaimed
    bool claim_lingers = false;
    std::uint32_t awaited_by = kNobody;     // the first group that waits for a turn here
    std::uint64_t turn_client = 0;          // the client whose turn others wait for
    std::uint32_t counted_group = kNobody;  // the last one added to groups_in_turn
    std::uint32_t limit = 0;                // of groups_in_turn; 0: no limit
    std::uint32_t joiners = 0;              // with recent work, that join these turns
    std::uint32_t usual_limit = 0;          // without what filling.h adds
    bool is_limit_free = false;             // filling.h decides it
    std::optional<std::size_t> counted;     // Filling::Advance
    Filling::Takers takers;
    HighestRank takes_turns;              // of the takers
    HighestRank in_turn;                  // of the groups that have their turn since before now, and work
    std::uint32_t early_group = kNobody;  // which goes early here
    std::uint32_t lender = kNobody;       // which has its turn and lends it
    std::uint32_t groups_in_turn = 0;     // admitted, and take turns
    std::uint32_t next_in_turn = 0;       // of next_rank, and wait for a turn, here or elsewhere
    Rank next_rank;
    std::uint32_t next_group = kNobody;    // the last one added to next_in_turn
    std::uint32_t background_clients = 0;  // busy, open and can be overtaken: they divide the window
    std::uint32_t top_clients = 0;         // busy, open and cannot: likewise
    bool is_mixed = false;                 // its groups' ranks can differ
    bool is_aside = false;                 // clients without others below them are untracked, or may be
    // By mode, the highest rank of an attached group in it.
    std::array<Rank, BenefitMemory::kModes> by_mode;
    // The same of groups that are not away, with kRestMode for one that is not about to wait.
    std::array<Rank, BenefitMemory::kModes> by_mode_not_away;
    mutable ModesAbove last_above;  // the last answer of Above: most tenants here have the same rank
    // Where time slices are a lever: an attached client is below a group that holds whenever it is busy; the highest
    // rank with recent work, and the strictest mode of its groups.
    bool can_be_held = false;
    Rank active;
    Mode active_mode = kCheapest;
    std::uint64_t active_until_ns = kNever;  // when that rank's work stops being recent
    // The most important admitted client that is busy and holds no others now.
    int beside = std::numeric_limits<int>::min();  // its priority
    std::uint64_t beside_client = 0;
  };

  // Keeps the lowest values, ascending.
  template <typename Value, std::size_t kCount>
  static void AddLowest(std::array<Value, kCount>& lowest, Value value) {
    if (!(value < lowest.back())) return;
    for (Value& each : lowest)
      if (value < each) std::swap(value, each);
  }

  struct GroupView {
    Rank rank;
    bool keeps_turn = false;  // became idle in its turn, or while it went early, just now
    bool is_early = false;    // goes early (turns.h)
    bool has_turn = false;    // admitted with a turn, and not only until an earlier group has all its devices
    bool is_ending = false;   // may launch nothing more in its turn (turns.h)
    bool one_launch = false;  // at a time, since two would be longer than its turn
    bool joins = false;       // the turns of others, instead of having its own (filling.h)
    std::uint64_t next_decision_ns = kNever;  // of its standing
    bool busy = false;
    bool present = false;  // busy, lingers or keeps its turn
    bool tracked = false;
    bool is_aside = false;     // untracked, since nobody holds it anyway
    Why blocked = Why::kOpen;  // kOpen: admitted
    std::uint64_t blocked_for = 0;
  };

  // A present group in the order of admission.
  struct Place {
    Rank rank;
    double share = 0;        // the order of groups kept to a share; infinite for others
    std::uint64_t turn = 0;  // groups in their turn first, by its beginning, then the others by the end of the last one
    std::uint32_t group = 0;
  };

  void Survey(const Rules& rules);
  Candidate CandidateOf(std::uint32_t group) const;
  void SumOwnerUse(const Rules& rules);
  void Attach(std::uint32_t group, Rank potential, bool ranked);
  void FindTracked();
  // arbiter_aside.cc
  void FindAside();
  void StepAside();
  void MarkDevicesAside();
  template <typename MayBeAside>
  void FindDevicesAside(MayBeAside may_be_aside);
  bool IsOrMayBeAside(std::uint32_t group) const;
  bool AreAside(std::uint32_t group) const {
    const auto tenants = roster_.TenantsOf(group);
    return std::all_of(tenants.begin(), tenants.end(),
                       [this](auto i) { return devices_[state_->tenants[i].device].is_aside; });
  }
  std::uint64_t HashOfTenants(std::uint32_t group) const;
  bool WasAside(std::uint32_t group) const;
  void Remember(std::uint32_t group);
  void NoteLent(std::uint32_t group);
  std::uint32_t OnlyDeviceOf(std::uint32_t group) const;
  void CountLaunches(std::uint32_t group);
  void FindLimits();
  void ForgetTurns(std::uint32_t device);
  void EndRound(std::uint32_t device);
  std::optional<std::int64_t> FasterIn(std::uint32_t device, std::uint32_t group) const;
  std::optional<Filling::Gain> GainOn(std::uint32_t device) const;
  void NoteGains(std::uint32_t device);
  void FindTakers();
  void AddTaker(std::uint32_t group, std::uint32_t device);
  void FindJoiners();
  // arbiter_early.cc
  void FindEarly();
  void FindTurnHolders();
  static bool IsTaken(const DeviceView& device, const Rank& rank);
  bool GoesOn(std::uint32_t group) const;
  void AskEarly(std::uint32_t group);
  bool IsInterrupted(std::uint32_t group) const;
  std::uint32_t MostBelow(std::uint32_t group) const;
  void NoteFilling();
  void KeepBenefit(std::uint32_t group);
  void Forget(std::uint32_t group);
  void FindHolders();
  void Order();
  void Interleave();
  void Admit(std::uint32_t group);
  void WaitForClaims(std::uint32_t group);
  void WaitForTurn(std::uint32_t group);
  void WaitToBorrow(std::uint32_t group);
  void Pass(std::uint32_t group);
  std::uint32_t TurnsOwed(std::uint32_t group, std::uint32_t device) const;
  void AwaitReturn(std::uint32_t group);
  void Reserve(std::uint32_t group);
  void Claim(std::uint32_t group);
  void ClaimDevice(std::uint32_t tenant, bool lingers);
  void FinishShares();
  void WatchTurns(std::uint32_t group);
  void StopEnding(std::uint32_t group);
  void WatchInterrupted(std::uint32_t group);
  bool EndsLaunches(std::uint32_t group) const;
  bool IsObserved(std::uint32_t group) const;
  Benefit::Work WorkOf(std::uint32_t group) const;
  // Since the last decision, by clients of lower priorities there.
  std::uint64_t LaunchedBelow(int priority, std::uint32_t device) const;
  void NoteAnswer(std::uint32_t group);
  Others OthersOf(std::uint32_t group) const;
  void NoteBenefits();
  void FindAwaited();
  void CountWindows();
  void SetGate(std::uint32_t tenant, Gate& gate) const;
  void NoteMode(const Tenant& tenant, Mode mode);
  void NoteActive(const Tenant& tenant, Mode mode);
  std::uint32_t SliceFor(std::uint32_t tenant, const Gate& gate) const;
  Why WhyClaimed(const DeviceView& device, const Rank& rank) const;
  std::uint32_t WindowOf(std::uint32_t tenant, std::uint32_t& floor) const;
  static std::uint32_t WidePercent(const DeviceView& device, const Rank& rank, std::uint32_t clients);

  bool FindOvertaken(const Tenant& tenant) const;
  bool CanBeOvertaken(std::uint32_t tenant) const { return overtaken_[tenant] != 0; }
  // An attached group would hold it whenever that group is busy.
  bool CanBeHeld(std::uint32_t tenant) const {
    const Tenant& own = state_->tenants[tenant];
    return CanBeOvertaken(tenant) &&
           (!holders_.Measures() || HoldsThroughout(Above(devices_[own.device], groups_[own.group].rank).any));
  }
  // The mode among higher ranks that costs those below most; `from`: of the cheaper ones from that on.
  static Mode StrictestAbove(const std::array<Rank, BenefitMemory::kModes>& by_mode, const Rank& rank,
                             Mode from = Mode::kHeld) {
    const auto found = std::find_if(by_mode.begin() + static_cast<std::ptrdiff_t>(from), by_mode.end(),
                                    [&rank](const Rank& above) { return rank < above; });
    return found == by_mode.end() ? kCheapest : static_cast<Mode>(found - by_mode.begin());
  }
  // Once all modes are noted.
  static ModesAbove& Above(const DeviceView& device, const Rank& rank) {
    ModesAbove& above = device.last_above;
    if (!above.is_known || above.rank != rank)
      above = {.is_known = true,
               .rank = rank,
               .any = StrictestAbove(device.by_mode, rank),
               .not_away = StrictestAbove(device.by_mode_not_away, rank)};
    return above;
  }
  // A less important client is attached to its device.
  bool HasOthersBelow(const Tenant& tenant) const {
    return state_->groups[tenant.group].priority > devices_[tenant.device].bottom_priority;
  }
  bool IsAboveOthers(std::uint32_t group) const {
    const auto tenants = roster_.TenantsOf(group);
    return std::any_of(tenants.begin(), tenants.end(), [this](auto i) { return HasOthersBelow(state_->tenants[i]); });
  }
  // Nobody is held for its client, and it takes no part in turns, shares or the admission of several devices.
  bool ConcernsNobody(const Tenant& tenant) const {
    return is_by_priority_ && devices_.size() == 1 && devices_.front().limit == 0 && !HasOthersBelow(tenant);
  }
  // Clients below it run beside it most of the time. It takes no turns, since it would wait for theirs.
  bool LetsOthersRun(std::uint32_t tenant) const {
    const Tenant& own = state_->tenants[tenant];
    return !HoldsThroughout(holders_.ModeOf(own.group)) && HasOthersBelow(own);
  }
  // No attached group is above it or its equal.
  bool IsAloneOnTop(const Tenant& tenant) const {
    const DeviceView& device = devices_[tenant.device];
    return device.top_group == tenant.group && device.second.priority < device.top.priority;
  }
  // It has a deadline, and meets it beside unrestrained others.
  bool IsInTimeAnyway(const Tenant& tenant) const {
    return tenant.deadline_after_ns != 0 && holders_.ModeOf(tenant.group) == kCheapest;
  }
  // Only groups that can be held throughout, and sharers: where a device time-slices processes, two sharers side by
  // side would be charged for each other's slices.
  bool NeedsTurns(std::uint32_t tenant) const {
    return (CanBeHeld(tenant) && !LetsOthersRun(tenant)) || share_.KeepsTenant(tenant);
  }
  // And it does not join those of others.
  bool TakesTurns(std::uint32_t tenant) const {
    return !groups_[state_->tenants[tenant].group].joins && NeedsTurns(tenant);
  }
  // The most important recent work here is above it and does not hold it throughout.
  bool RunsBeside(const Tenant& tenant) const {
    const DeviceView& device = devices_[tenant.device];
    return groups_[tenant.group].rank < device.active && !HoldsThroughout(device.active_mode);
  }
  bool HasSlices(const DeviceView& device) const { return state_->settings.time_slices && device.usual_limit == 1; }
  bool IsFull(const DeviceView& device) const { return device.limit != 0 && device.groups_in_turn >= device.limit; }
  // Whether the remaining turns are reserved for earlier groups of this rank, which still wait for other devices.
  bool IsReserved(const DeviceView& device, const Rank& rank) const {
    return device.limit != 0 && device.next_rank == rank && device.groups_in_turn + device.next_in_turn >= device.limit;
  }
  bool IsOpen(std::uint32_t group) const { return groups_[group].busy && groups_[group].blocked == Why::kOpen; }
  bool IsRecent(const Tenant& tenant) const {
    return tenant.busy || (tenant.idle_since_ns != 0 && now_ns_ - tenant.idle_since_ns < kRecentNs);
  }
  // Never true for a strict group, whose device must be ready at any time.
  bool IsAway(const Tenant& tenant) const {
    return !tenant.busy && holders_.Measures(tenant.group) && now_ns_ - tenant.idle_since_ns >= kAwayNs;
  }
  bool Lingers(const Tenant& tenant) const {
    return !tenant.busy && tenant.idle_since_ns != 0 && LingerEnd(tenant) > now_ns_;
  }
  std::uint64_t LingerEnd(const Tenant& tenant) const {
    const bool waits = IsWhileItWaits(decision_->memory[tenant.group].benefit->mode);
    const std::uint64_t linger_ns = state_->settings.linger_us * kNsPerUs;
    return tenant.idle_since_ns + (waits ? std::max(linger_ns, kWaitLingerNs) : linger_ns);
  }
  // A client that synchronises after each step keeps its turn between steps; otherwise each step would wait for
  // everybody's turn.
  std::uint64_t TurnKeptUntil(const Tenant& tenant) const {
    return tenant.idle_since_ns == 0 ? 0 : tenant.idle_since_ns + 2 * kNsPerUs * state_->settings.linger_us;
  }
  bool KeepsTurn(const Tenant& tenant) const {
    return groups_[tenant.group].keeps_turn && TurnKeptUntil(tenant) > now_ns_;
  }
  bool IsInTurnOn(std::uint32_t group, std::uint32_t device) const;
  // Its oldest client there.
  std::uint64_t FirstClientOf(std::uint32_t group, std::uint32_t device) const;
  // When it last became idle; of one with work, one of its clients.
  std::uint64_t IdleSince(std::uint32_t group) const;
  // Since when it has work; kNever: it has none.
  std::uint64_t BusySince(std::uint32_t group) const;
  Turns::Work TurnWorkOf(std::uint32_t group) const;
  void DecideAgainAt(std::uint64_t time_ns) {
    decision_->next_decision_ns = std::min(decision_->next_decision_ns, time_ns);
  }

  const State* state_ = nullptr;
  Decision* decision_ = nullptr;
  std::uint64_t now_ns_ = 0;
  Why why_ = Why::kPriority;
  bool is_by_priority_ = true;  // alone: no levels, no shares
  bool was_early_ = false;      // a group went early at the last decision
  Guard guard_;
  Holders holders_;
  Turns turns_{0, false, 0};
  Filling filling_;
  Roster roster_;
  Share share_;
  std::vector<DeviceView> devices_;
  std::vector<GroupView> groups_;
  std::vector<Place> order_;
  std::vector<Place> interleaved_;
  std::vector<std::uint64_t> awaited_;   // clients, each once
  std::vector<std::uint8_t> overtaken_;  // by tenant: an attached group can overtake it
  // What groups that have work have used, for Candidate::others_use_ns.
  struct OwnerUse {
    std::uint64_t ns = 0;
    std::uint32_t groups = 0;
  };
  std::vector<OwnerUse> owner_use_;       // by owner
  std::vector<OwnerUse> own_use_;         // by group: its part in that
  std::vector<std::uint32_t> neighbour_;  // by device: scratch of SumOwnerUse
};

}  // namespace xschedd::policy
