// A policy's input and output: plain values, no clock, no I/O, no pointers into the daemon.
//
// A State describes some devices, all groups on them and these groups' other devices, so that no group is cut in two.
// The history that a decision needs (since when a group waits, whose turn it is) is in the memory of groups and
// devices; the Decision returns it for the next State. The same State and time always give the same Decision. Thread
// rule: values; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/policy/settings.h"

namespace xschedd::policy {

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t kNsPerUs = 1'000;
inline constexpr std::uint64_t kNsPerMs = 1'000'000;
inline constexpr std::uint64_t kNsPerS = 1'000'000'000;

inline constexpr Limits kWeightLimits{10'000, 1};
inline constexpr std::uint32_t kWeightDefault = 100;
inline constexpr Limits kDeadlineLimits{3'600'000'000, 1};  // µs

// What filling.h keeps of a device.
struct FillingMemory {
  struct Trial {
    std::uint32_t number = 0;  // of groups that have their turn at a time; 0: there is no trial
    std::uint64_t group = 0;   // whose joining is the other way; 0: nobody's
    bool is_fewer = false;     // than in force have a device at a time
    bool operator==(const Trial&) const = default;
  };
  std::uint32_t settled = 1;                     // groups that have their turn at a time: the answer so far
  Trial trial = {};                              // what the current or last pair compares with what is in force
  std::uint8_t place = 0;                        // of the current block in its pair; 0: none is measured
  bool is_trial = false;                         // the current block is the trial's
  std::uint64_t block_ns = 0;                    // of the current block, with kSettleNs
  std::array<std::uint64_t, 2> counted_ns = {};  // of the trial's blocks: with what is in force, and what is tried
  std::uint32_t pairs = 0;                       // of this trial
  std::uint8_t next_trial = 0;                   // in this round: 0: one more, 1: one fewer, 2: of groups' joining
  std::uint64_t tried_group = 0;                 // the last one whose joining was tried in this round
  std::uint32_t trials = 0;                      // so far in this round
  float trial_gain = 0;                          // of more at a time, in the present or last trial: a logarithm
  bool is_round_over = false;
  Trial best = {};  // so far in this round; its number 0: nothing is better than what is in force
  float best_gain = 0;
  float gain = 0;             // of one more at a time, at the last trial of a number: a logarithm
  std::uint32_t gain_of = 0;  // that one more made so many; 0: there was no such trial of these groups
  std::uint64_t wait_ns = 0;  // between rounds, for each of its trials; 0: there was no round yet
  std::uint64_t left_ns = 0;  // until the next pair
  // Of the groups that take turns, at the last decision: how many, of these how many join, which, how many at a time
  // the tolerance of those above allows, whether more than one had work, and the next ones whose joining has not been
  // tried in this round.
  std::uint32_t groups = 0;
  std::uint32_t joiners = 0;
  std::uint64_t who = 0;
  std::uint64_t others = 0;  // which take turns now, and since when
  std::uint64_t others_since_ns = 0;
  std::uint32_t most = 1;
  bool competed = false;
  // Of those that have turns of their own, and of those that join; 0: none.
  std::array<std::uint64_t, 2> candidates = {};
  // The groups that took turns before these, and the answer for them.
  std::uint64_t who_before = 0;
  std::uint32_t settled_before = 1;
  std::uint64_t seen_ns = 0;  // the time of the last decision
  // Of the last decision: its time, how many groups had their turn at a time, whether any joined, and the group whose
  // joining was the other way.
  std::uint64_t number_ns = 0;
  std::uint32_t number = 1;
  bool may_join = false;
  std::uint64_t toggled = 0;
  bool operator==(const FillingMemory&) const = default;
};

struct DeviceMemory {
  std::uint64_t guard_since_ns = 0;  // when its last guard slot began (guard.h); 0: never
  std::uint32_t divided_by = 0;      // among how many clients background windows are divided
  std::uint64_t early_ended_ns = 0;  // when a group last ceased to go early there (turns.h)
  FillingMemory filling = {};
  bool operator==(const DeviceMemory&) const = default;
};

struct Device {
  std::uint32_t default_max_concurrent = 0;  // background groups open at a time, as few as fill it; 0: no limit
  std::uint32_t windows = 1;                 // what clients below another have in flight, in Settings::window_us
  DeviceMemory memory = {};
};

// What share.h keeps of a group.
struct ShareMemory {
  enum class State : std::uint8_t {
    kAway,     // no work
    kBlocked,  // work, but held for a reason not below
    kWaiting,  // for a turn
    kHeld,     // ahead of its share
    kOpen,
  };
  double virtual_ns = 0;        // GPU time divided by weight, since it last came back
  std::uint64_t weight = 0;     // in force until the next decision, in parts (share.h); 0: none was
  std::uint64_t missed_ns = 0;  // while it was open and others waited: time without measured GPU time so far
  std::uint64_t seen_ns = 0;    // the time of the last decision that charged it
  std::uint64_t left_ns = 0;    // when it went away; 0: it never had work, or is not away
  int priority = 0;             // its class then
  State state = State::kAway;
  bool ahead = false;  // must let others catch up
  bool operator==(const ShareMemory&) const = default;
};

inline constexpr int kFairLevels = 4;

// What fair.cc keeps of a group.
struct FairMemory {
  std::uint64_t attained_ns = 0;  // GPU time, less the time for which it was idle since
  std::uint64_t owner_ns = 0;     // the same of all groups of its owner that have work, and of this one
  std::uint64_t counted_ns = 0;   // the time of the last decision that counted
  bool busy = false;              // at that time
  bool operator==(const FairMemory&) const = default;
};

// The least important clients below some group.
struct Others {
  std::uint32_t count = 0;  // Benefit::kMaxOthers at most
  std::uint64_t who = 0;    // a hash of their ids, and of the answers of groups above both; 0: none
  bool operator==(const Others&) const = default;
};

// What waits.h keeps of a group.
struct WaitMemory {
  bool now = false;            // its host waits
  std::uint64_t until_ns = 0;  // when its last wait ended
  std::uint8_t in_row = 0;     // waits, with the last one; 0: none yet
  std::uint8_t went_on = 0;    // how often the last one went on after a moment (waits.h)
  // By place in the row, how often another wait followed within kWaitLingerNs, and within kRestLeadNs; and how often
  // one that had gone on so often did not again. The last entries are for all further ones.
  std::array<float, 4> followed = {1, 1, 1, 1};
  std::array<float, 4> followed_soon = {1, 1, 1, 1};
  std::array<std::array<float, 4>, 4> ended{};
  struct Stretch {
    std::uint64_t ns = 0;
    std::uint64_t launches = 0;
    bool operator==(const Stretch&) const = default;
  };
  Stretch lead;  // of each kind, the least that recent ones had; 0: unknown
  Stretch gap;
  std::uint64_t stretch_since_ns = 0;  // when the present one began; 0: unknown, or it waits
  std::uint64_t launched = 0;          // in it
  bool is_in_gap = false;              // it is a gap
  std::uint64_t shut_since_ns = 0;     // others are held for the wait at its end since then; 0: not yet
  bool operator==(const WaitMemory&) const = default;
};

// What benefit.h keeps of a group.
struct BenefitMemory {
  // When others are held for it, the costliest for them first: whenever it is busy, with a small or a wide window in
  // between; only while its host waits for the device, with a small to a wide window in between; never, with a wide
  // window and shorter time slices, with a wider window alone, or with nothing that they would notice (benefit.h,
  // Allowance).
  enum class Mode : std::uint8_t {
    kHeld,
    kHeldWide,
    kWaitsNarrowest,
    kWaitsNarrow,
    kWaitsMedium,
    kWaitsWider,
    kWaitsWide,
    kWaitsHalf,
    kBeside,
    kBesideWide,
    kFree
  };
  static constexpr std::size_t kModes = 11;
  struct Block {
    std::uint64_t busy_ns = 0;
    std::uint64_t waits_ns = 0;      // of these, while its host waited
    std::uint64_t contended_ns = 0;  // of these, while a less important client had work
    std::uint64_t launches = 0;
    std::uint64_t wanted_ns = 0;        // of its bursts, as a deadline counts them (benefit.h)
    std::uint64_t lasted_ns = 0;        // with pauses
    std::uint64_t others_launches = 0;  // in that time, of less important clients
    std::uint16_t bursts = 0;
    bool operator==(const Block&) const = default;
  };
  // How much slower a mode was than kHeld in one pair, as logarithms of ratios.
  struct Measured {
    float typical = 0;
    float whole = 0;  // of the whole time, whatever its host did
    bool reports_waits = false;
    std::optional<float> others_gain;  // how much faster the others were; unknown: they hardly launched anything
    bool operator==(const Measured&) const = default;
  };
  // Means of the above over pairs, and their variances.
  struct Comparison {
    std::uint32_t pairs = 0;
    bool is_known = false;  // enough for a verdict
    float typical = 0;
    float typical_variance = 0;
    float tail = 0;  // of what is outside twice the tolerance
    float tail_variance = 0;
    std::uint32_t whole_pairs = 0;
    float whole = 0;
    float whole_variance = 0;
    std::uint32_t others_pairs = 0;
    float others_gain = 0;
    float others_gain_variance = 0;
    bool operator==(const Comparison&) const = default;
  };
  Mode settled = Mode::kHeld;  // the answer so far
  Mode mode = Mode::kHeld;     // in force: another while a pair is measured
  Mode trial = Mode::kFree;    // what the current or last pair compares with kHeld
  std::uint8_t place = 0;      // of the current block in its pair; 0: none is measured
  bool repeats = false;        // the last pair, `doubtful`, was against what is known: the next is in the same mode
  Measured doubtful;
  bool searches = true;       // the search for the answer has not come to its end
  bool is_put_off = false;    // it has, but the answer had just changed
  std::uint8_t unspared = 0;  // pairs of the first search that delayed it much; the next may follow at once
  // How the time until the next decision counts.
  bool open = false;          // busy, and not held itself
  bool others_work = false;   // a less important client has work on one of its devices
  bool several_work = false;  // more than one has, on one device
  bool contended = false;     // busy, and a less important client has work on the same device
  WaitMemory waits;
  bool lets_row_be = false;           // in kWaitsHalf: others are not held for the present row of waits
  Others others;                      // less important clients with recent work there
  Others known_with;                  // the others beside which what is known was measured
  std::uint64_t others_since_ns = 0;  // when `others` changed
  std::uint64_t relearnt_ns = 0;      // when all was last measured anew, for other clients or for other work
  std::uint64_t relearn_wait_ns = 0;  // the least time until it may happen again
  Mode relearnt_from = Mode::kHeld;   // the answer then
  float known_pace_ns = 0;            // busy time per launch while held, in the first pair of what is known; 0: none
  float answer_pace_ns = 0;           // the same with the answer in force, since it is; 0: not known yet
  std::uint64_t paced_ns = 0;         // contended, with the answer in force, since that was last compared
  std::uint64_t paced_launches = 0;
  bool holds = true;  // others are held for it now, if it is busy
  float cost = 0;     // the part of the time in which others were held for it
  float longest = 0;  // the part of the others' working time in which it was open and contended; 0: not known
  float several = 1;  // the part of the others' working time in which more than one of them had work
  std::array<Comparison, kModes - 1> comparisons;  // by mode, from kHeldWide on
  bool skips = false;          // the rest of this burst is in no block: one ended for being slow, or others settle
  bool skips_request = false;  // likewise of this request: it began before others could have more in flight
  Block block;
  Block first;                         // of the pair
  float held_ns = 0;                   // busy time per launch in the last held block; 0: unknown
  float held_waits_ns = 0;             // of that, while its host waited
  std::uint64_t settles_until_ns = 0;  // work until then is in no block
  std::uint64_t burst_ns = 0;          // of the current burst, while it was open
  std::uint64_t burst_launches = 0;
  std::uint64_t request_ns = 0;       // of the bursts since the last pause that did not count, while they were open
  std::uint64_t spell_ns = 0;         // open, since the last pause in which others were let in
  std::uint64_t usual_spell_ns = 0;   // a moving average of such times; 0: unknown
  std::uint64_t idle_since_ns = 0;    // since when it is idle; 0: it is busy
  std::uint64_t pause_credit_ns = 0;  // a pause up to this is host time (benefit.h)
  std::uint64_t deadline_ns = 0;      // of a burst, counted from its beginning; 0: none
  std::uint64_t seen_ns = 0;          // the time of the last decision
  std::uint64_t waited_ns = 0;        // others were held for it
  std::uint64_t others_ns = 0;        // others had work
  std::uint64_t several_ns = 0;       // more than one of them had
  std::uint64_t contended_ns = 0;     // it was open and contended
  std::uint64_t cost_since_ns = 0;
  std::uint64_t wait_ns = 0;  // between trials; 0: the search has not come to an end yet
  std::uint64_t next_trial_ns = 0;
  std::uint64_t spared_ns = 0;   // no pair begins before it has worked so long: the last ones delayed it much
  std::uint64_t changed_ns = 0;  // when the answer last changed
  bool others_aside = false;     // those below it are untracked
  std::uint64_t watched_ns = 0;  // when they were last tracked again; 0: they never were aside
  Comparison& Of(Mode compared) { return comparisons[static_cast<std::size_t>(compared) - 1]; }
  const Comparison& Of(Mode compared) const { return comparisons[static_cast<std::size_t>(compared) - 1]; }
  bool operator==(const BenefitMemory&) const = default;
};

// A benefit, which takes memory only once it is used. Most groups have nobody below them and never use it: a decision
// visits hundreds of groups, and their memory must fit into a core's cache. Copies are deep; Clear keeps the memory.
class BenefitSlot {
 public:
  BenefitSlot() = default;
  BenefitSlot(const BenefitSlot& other) { *this = other; }
  BenefitSlot(BenefitSlot&& other) noexcept
      : memory_(std::move(other.memory_)), is_used_(std::exchange(other.is_used_, false)) {}
  BenefitSlot& operator=(const BenefitSlot& other) {
    if (this == &other) return *this;
    if (other.is_used_) {
      Use() = *other.memory_;
    } else {
      Clear();
    }
    return *this;
  }
  BenefitSlot& operator=(BenefitSlot&& other) noexcept {
    memory_ = std::move(other.memory_);
    is_used_ = std::exchange(other.is_used_, false);
    return *this;
  }
  ~BenefitSlot() = default;

  bool IsUsed() const { return is_used_; }
  void Clear() { is_used_ = false; }
  // As it was made, if it was not used before.
  BenefitMemory& Use() {
    if (memory_ == nullptr) memory_ = std::make_unique<BenefitMemory>();
    if (!is_used_) *memory_ = BenefitMemory{};
    is_used_ = true;
    return *memory_;
  }
  // One as it was made, if it is not used.
  const BenefitMemory& operator*() const {
    static const BenefitMemory unused;
    return is_used_ ? *memory_ : unused;
  }
  const BenefitMemory* operator->() const { return &**this; }
  bool operator==(const BenefitSlot& other) const {
    return is_used_ == other.is_used_ && (!is_used_ || *memory_ == *other.memory_);
  }

 private:
  std::unique_ptr<BenefitMemory> memory_;
  bool is_used_ = false;
};

struct GroupMemory {
  std::uint64_t tracked_since_ns = 0;  // 0: it is not tracked
  std::uint64_t turn_since_ns = 0;     // when its turn began; 0: it has none (turns.h)
  std::uint64_t last_turn_ns = 0;      // when its last turn ended; before its first, when it was first seen
  std::uint64_t early_since_ns = 0;    // since when it goes early; 0: it does not (turns.h)
  bool was_early = false;              // and when it last did, it became idle before its time was up
  std::uint64_t ending_since_ns = 0;   // since when it may launch nothing more in its turn; 0: it may (turns.h)
  std::uint64_t turn_ran_ns = 0;       // GPU time of its launches that have ended in its turn
  std::uint64_t turn_held_ns = 0;      // for how long it was held in its turn, before
  std::uint64_t held_since_ns = 0;     // since when it is; 0: it is not
  std::int64_t owed_ns = 0;            // by how much its turns were too long; negative: too short
  std::uint64_t had_device_ns = 0;     // when it last gave way after it went early or had a turn lent
  std::uint64_t ran_ns = 0;            // GPU time of its recent launches (turns.h)
  std::uint64_t launched = 0;          // how many these were
  std::uint64_t burst_since_ns = 0;    // since when it has work; 0: it has none
  std::uint64_t burst_ns = 0;          // for how long it had some in its turn, the last time; 0: unknown
  std::array<std::uint64_t, 2> turn_launches = {};  // in the blocks of the present trial (filling.h)
  bool takes_turns = false;                         // with the others of the highest rank that do, at the last decision
  bool gains_beside = true;            // it got on faster with one more at a time, when that was last tried
  bool joins = false;                  // the turns of all others, instead of having its own (filling.h)
  float joins_gain = 0;                // what was measured when that became the answer: a logarithm
  std::uint64_t open_since_ns = 0;     // busy and open since, also by the guard; 0: it is not (guard.h)
  std::uint64_t starved_since_ns = 0;  // when its wait began, until it was open for a guard turn; 0: none
  std::uint64_t had_ns = 0;            // open time since then, in openings that count
  std::uint64_t guard_until_ns = 0;    // until when the guard keeps it open; 0: it does not
  std::uint64_t urgent_ns = 0;         // laxity: the latest deadline of work that has no slack left; 0: none
  bool urgent_busy = false;            // it had work at that decision
  // Untracked, since nobody holds it anyway (arbiter_aside.cc): a hash of its clients; 0: it is not.
  std::uint64_t aside = 0;
  ShareMemory share = {};
  FairMemory fair = {};
  BenefitSlot benefit;
  bool operator==(const GroupMemory&) const = default;
};

inline constexpr std::uint32_t kNoOwner = ~0u;

struct Group {
  std::uint64_t id = 0;                   // grows with arrival
  std::uint32_t owner = kNoOwner;         // a number from 0 on, the same for all of one owner; kNoOwner: itself
  int priority = 0;                       // in effect for all its clients
  std::uint32_t weight = kWeightDefault;  // likewise
  bool hold = false;                      // until release: one client on hold holds its group
  bool strict = false;                    // Latency::kStrict (common/latency.h)
  bool accounted = false;                 // a claim counts its GPU time
  GroupMemory memory = {};
};

// One client on one device.
struct Tenant {
  std::uint64_t client = 0;
  std::uint32_t group = 0;   // index into State::groups
  std::uint32_t device = 0;  // index into State::devices
  bool busy = false;
  bool waits = false;               // busy, and its host waits for the device
  std::uint64_t idle_since_ns = 0;  // when it last became idle; 0: it never was busy
  std::uint64_t busy_since_ns = 0;  // when it became busy, if it is busy
  // GPU time, as its client measures it, limited to what is possible in the time that has passed:
  std::uint64_t ran_ns = 0;    // since the last decision about this tenant
  std::uint64_t launched = 0;  // likewise, as its client counts
  bool is_in_flight = false;   // launches of it have not ended, as its client counts
  // Time with an open gate, by the daemon's clock. Kept for tenants with a deadline.
  std::uint64_t burst_ns = 0;  // since it became busy
  std::uint64_t usual_ns = 0;  // what its recent bursts needed, an overestimate; 0: unknown
  // The deadline of its most urgent unfinished work; 0: none.
  std::uint64_t deadline_ns = 0;
  // Its shortest deadline, counted from becoming busy; 0: none. Known also while idle.
  std::uint64_t deadline_after_ns = 0;
};

struct State {
  Settings settings;
  std::vector<Device> devices;
  std::vector<Group> groups;
  std::vector<Tenant> tenants;

  // How many groups take turns at a time there, at least; 0: no limit, nobody takes turns.
  std::uint32_t LimitOf(std::size_t device) const {
    return settings.max_concurrent.value_or(devices[device].default_max_concurrent);
  }
};

enum class Why {
  kOpen,      // nothing holds it
  kGuard,     // opened by the starvation guard although others come first
  kBeside,    // open although one of higher priority is busy: holding was measured not to help that one
  kHold,      // held by an administrator or its user
  kPriority,  // held for a busy client of higher priority on this device
  kLinger,    // held for one that became idle just now
  kGang,      // held for one on another device that its group needs
  kTurn,      // held while it is another background group's turn
  kShare,     // ahead of its share: held for the one furthest behind
  kDeadline,  // held for one of the same priority that a deadline puts first, or that this one's slack lets pass
  kFair,      // held for one of the same priority that had less GPU time
};

struct Gate {
  bool held = false;
  bool tracked = false;
  std::uint32_t window_us = 0;
  std::uint32_t window_floor = 0;
  std::uint32_t slice_us = 0;  // time slice; 0: the driver's own
  Why why = Why::kOpen;
  std::uint64_t held_for = 0;  // client id; 0: no client in particular
  // It must be known soon when it is idle: a client with work is held for it, or its times are compared. Held: when its
  // launches have ended, and with them its turn.
  bool awaited = false;
  bool tells_waits = false;     // its client must say when its host waits
  bool count_may_wait = false;  // with tells_waits: how many launches there were is needed with its reports only
  bool may_spin = false;        // held for a more important client, and its threads may spin for a while
  // Open, and nobody is held or opened when its client becomes busy or idle: a decision about that may wait.
  bool may_wait = false;
  bool operator==(const Gate&) const = default;
};

struct Decision {
  std::vector<Gate> gates;            // one for each State::tenants, in that order
  std::vector<GroupMemory> memory;    // one for each State::groups, in that order
  std::vector<DeviceMemory> devices;  // one for each State::devices, in that order
  std::uint64_t next_decision_ns = kNever;
};

}  // namespace xschedd::policy
