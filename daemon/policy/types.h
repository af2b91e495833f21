// What a policy sees and what it answers: plain values, no clock, no I/O, no pointers into the daemon.
//
// A State describes some devices, all groups that use them and all other devices of those groups, so that a group is
// always seen whole. History that a decision needs (since when a group waits, whose turn it is) is in the memory of
// groups and devices; the Decision returns the memory for the next State. The same State and time always give the same
// Decision. Thread rule: values; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
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

struct DeviceMemory {
  std::uint64_t guard_since_ns = 0;  // when its last guard slot began (guard.h); 0: it had none
  bool operator==(const DeviceMemory&) const = default;
};

struct Device {
  std::uint32_t default_max_concurrent = 0;  // background groups open at a time; 0: no limit
  DeviceMemory memory = {};
};

// What share.h keeps of a group.
struct ShareMemory {
  enum class State : std::uint8_t {
    kAway,     // no work
    kBlocked,  // work, but held for another reason than its share
    kWaiting,  // for a turn
    kHeld,     // ahead of its share
    kOpen,
  };
  double virtual_ns = 0;        // GPU time divided by weight, since it last came from being away
  std::uint64_t missed_ns = 0;  // while it was open and others waited: time for which no GPU time was measured yet
  std::uint64_t seen_ns = 0;    // the time of the decision that charged it last
  std::uint64_t left_ns = 0;    // since when it is away; 0: since ever, or it is not
  int priority = 0;             // the class in which it was
  State state = State::kAway;
  bool ahead = false;  // must let those behind it catch up
  bool operator==(const ShareMemory&) const = default;
};

inline constexpr int kFairLevels = 4;

// What fair.cc keeps of a group.
struct FairMemory {
  std::uint64_t attained_ns = 0;  // GPU time, less the time for which it was idle since
  std::uint64_t counted_ns = 0;   // the time of the decision that counted last
  bool busy = false;              // as it was then
  bool operator==(const FairMemory&) const = default;
};

// Clients that are less important than some group: the least important ones.
struct Others {
  std::uint32_t count = 0;  // Benefit::kMostOthers at most
  std::uint64_t who = 0;    // a hash; 0: nobody
  bool operator==(const Others&) const = default;
};

// What benefit.h keeps of a group.
struct BenefitMemory {
  // When others are held for it, beginning with what costs them most: whenever it is busy; only while its host waits
  // for the device, with a narrow, a wider and a wide window in between; never, with a wide window and short time
  // slices, with a wider one and longer slices, or with nothing that they would notice (benefit.h, Allowance).
  enum class Mode : std::uint8_t { kHeld, kWaitsNarrow, kWaitsWider, kWaitsWide, kBeside, kBesideWide, kFree };
  static constexpr std::size_t kModes = 7;
  struct Block {
    std::uint64_t busy_ns = 0;
    std::uint64_t waits_ns = 0;      // of these, while its host waited
    std::uint64_t contended_ns = 0;  // of these, with somebody less important who had work
    std::uint64_t launches = 0;
    std::uint64_t wanted_ns = 0;  // of its bursts, each at least as long as its deadline lets it be (benefit.h)
    std::uint16_t bursts = 0;
    bool operator==(const Block&) const = default;
  };
  // A mode beside kHeld: logarithms of ratios, averages over pairs, and their variances.
  struct Comparison {
    std::uint32_t pairs = 0;
    bool is_known = false;  // enough of them for a verdict
    float typical = 0;
    float typical_variance = 0;
    float tail = 0;  // of what is outside twice the tolerance
    float tail_variance = 0;
    std::uint32_t whole_pairs = 0;
    float whole = 0;  // of all its time, whatever its host did
    float whole_variance = 0;
    bool operator==(const Comparison&) const = default;
  };
  Mode settled = Mode::kHeld;  // the answer as known
  Mode mode = Mode::kHeld;     // now: another while a pair is measured
  Mode trial = Mode::kFree;    // what the present pair, or the last one, compares with kHeld
  std::uint8_t place = 0;      // of the present block in its pair; 0: none is measured
  std::uint8_t surprises = 0;  // the last pair fitted to nothing known
  // How the time until the next decision counts.
  bool open = false;                  // busy, and not held itself
  bool others_work = false;           // somebody less important has work on one of its devices
  bool contended = false;             // busy, and somebody less important has work on one of its devices
  bool waits = false;                 // its host waits
  Others others;                      // less important clients that have work there, or had some just now
  Others known_with;                  // those with whom what is known was measured
  std::uint64_t others_since_ns = 0;  // when they were others
  std::uint64_t relearnt_ns = 0;      // when what was known was forgotten for that
  std::uint64_t relearn_wait_ns = 0;  // not again until so much later
  Mode relearnt_from = Mode::kHeld;   // the answer then
  std::uint64_t waits_until_ns = 0;   // the end of its last wait, or of the present one if it ended now
  std::uint8_t waits_in_row = 0;      // with this one; 0: there was none yet
  // How often a wait was followed by the next of its row: by place in the row, the last for all behind it.
  std::array<float, 4> followed = {1, 1, 1, 1};
  bool holds = true;  // others are held for it now, if it is busy
  float cost = 0;     // the part of the time in which others were held for it
  float longest = 1;  // of the time in which they have work, that in which they would be held whenever it is busy
  std::array<Comparison, kModes - 1> comparisons;  // by mode, from kWaitsNarrow on
  bool skips = false;  // the rest of this burst belongs to no block: one was ended for being slow, or others settle
  Block block;
  Block first;                         // of the pair
  float held_ns = 0;                   // busy time per launch in the last block with others held; 0: not known
  float held_waits_ns = 0;             // of that, while its host waited
  std::uint64_t settles_until_ns = 0;  // what is done by then belongs to no block
  std::uint64_t burst_ns = 0;          // of the present burst, while it was open
  std::uint64_t burst_launches = 0;
  std::uint64_t idle_since_ns = 0;    // since when it has no work; 0: it has some
  std::uint64_t pause_credit_ns = 0;  // a pause of no more than this is its host's time (benefit.h)
  std::uint64_t deadline_ns = 0;      // of a burst, from its beginning; 0: none
  std::uint64_t seen_ns = 0;          // the time of the last decision
  std::uint64_t waited_ns = 0;        // others did, for it
  std::uint64_t others_ns = 0;        // they had work
  std::uint64_t contended_ns = 0;     // and it was busy
  std::uint64_t cost_since_ns = 0;
  std::uint64_t wait_ns = 0;  // until the next look at the answer; 0: there is none yet
  std::uint64_t next_trial_ns = 0;
  std::uint64_t changed_ns = 0;  // when the answer was another
  bool IsSettled() const { return wait_ns != 0; }
  float& Followed() { return followed[std::max<std::size_t>(waits_in_row, 1) - 1]; }
  float Followed() const { return followed[std::max<std::size_t>(waits_in_row, 1) - 1]; }
  Comparison& Of(Mode compared) { return comparisons[static_cast<std::size_t>(compared) - 1]; }
  const Comparison& Of(Mode compared) const { return comparisons[static_cast<std::size_t>(compared) - 1]; }
  bool operator==(const BenefitMemory&) const = default;
};

struct GroupMemory {
  std::uint64_t turn_since_ns = 0;     // 0: it is not its turn (turns.h)
  std::uint64_t last_turn_ns = 0;      // when its last turn ended; before its first, when it was first seen
  std::uint64_t open_since_ns = 0;     // busy and open since, by the guard, too; 0: it is not (guard.h)
  std::uint64_t starved_since_ns = 0;  // busy and held since, but for less than a guard turn; 0: it is not
  std::uint64_t had_ns = 0;            // open since then, in openings long enough to count
  std::uint64_t guard_until_ns = 0;    // the guard keeps it open until; 0: it does not
  std::uint64_t urgent_ns = 0;         // laxity: the latest deadline of work that has no slack left; 0: none
  bool urgent_busy = false;            // whether it had work when that was said
  ShareMemory share = {};
  FairMemory fair = {};
  BenefitMemory benefit = {};
  bool operator==(const GroupMemory&) const = default;
};

struct Group {
  std::uint64_t id = 0;                   // grows with arrival
  int priority = 0;                       // what counts for all of its clients
  std::uint32_t weight = kWeightDefault;  // likewise
  bool hold = false;                      // by an administrator: one held client holds its group
  bool strict = false;                    // Latency::kStrict (latency.h)
  GroupMemory memory = {};
};

// One client on one device.
struct Tenant {
  std::uint64_t client = 0;
  std::uint32_t group = 0;   // index into State::groups
  std::uint32_t device = 0;  // index into State::devices
  bool busy = false;
  bool waits = false;               // busy, and its host waits for the device
  std::uint64_t idle_since_ns = 0;  // when it last stopped being busy; 0: it never was
  std::uint64_t busy_since_ns = 0;  // when it became busy, if it is
  // GPU time, as its client measures it, limited to what is possible in the time that has passed:
  std::uint64_t ran_ns = 0;    // since the last decision about this tenant
  std::uint64_t launched = 0;  // likewise, as its client counts
  // Time with an open gate, by the daemon's clock. Kept for tenants with a deadline.
  std::uint64_t burst_ns = 0;  // since it became busy, if it is
  std::uint64_t usual_ns = 0;  // that its bursts of late have needed, rather more than less; 0: not known
  // Of its most urgent unfinished work: by when it is wanted; 0: no deadline.
  std::uint64_t deadline_ns = 0;
  // The shortest time, from becoming busy, in which it wants work done; 0: it has no deadlines. Known also while idle.
  std::uint64_t deadline_after_ns = 0;
};

struct State {
  Settings settings;
  std::vector<Device> devices;
  std::vector<Group> groups;
  std::vector<Tenant> tenants;
};

enum class Why {
  kOpen,      // nothing stands against it
  kGuard,     // open although others go before: the starvation guard's turn
  kBeside,    // open although one of higher priority is busy: holding was measured not to help that one
  kHold,      // held by an administrator
  kPriority,  // held for a busy client of higher priority on this device
  kLinger,    // held for one that has just become idle
  kGang,      // held for one on another device that its group needs
  kTurn,      // held while it is another background group's turn
  kShare,     // held because it is ahead of its share, for the one that is furthest behind
  kDeadline,  // held for one of the same priority that its deadline puts before this one, or that this one's lets pass
  kFair,      // held for one of the same priority that has had less of the device
};

struct Gate {
  bool held = false;
  bool tracked = false;
  std::uint32_t window_us = 0;
  std::uint32_t window_floor = 0;
  std::uint32_t slice_us = 0;  // time slice; 0: the driver's own
  Why why = Why::kOpen;
  std::uint64_t held_for = 0;  // client id; 0: nobody in particular
  bool awaited = false;        // open, and somebody who has work is held for its client
  bool tells_waits = false;    // its client is to say when its host waits
  bool operator==(const Gate&) const = default;
};

struct Decision {
  std::vector<Gate> gates;            // one for each State::tenants, in that order
  std::vector<GroupMemory> memory;    // one for each State::groups, in that order
  std::vector<DeviceMemory> devices;  // one for each State::devices, in that order
  std::uint64_t next_look_ns = kNever;
};

}  // namespace xschedd::policy
