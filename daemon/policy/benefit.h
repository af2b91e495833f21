// Finds out by trial when others should be held for an important group. Now and then they run beside it for a moment,
// or are held only while its host waits for the device, and its pace is compared with that while they are held.
//
//   - Held only while the host waits: a launching host runs ahead of the device and makes up for delays. Only when it
//     waits must the device be its own, so what others may have in flight is bounded (AllowanceOf). This needs a client
//     that reports when it waits, and that does not wait nearly all the time (kMostlyWaits): that would be the same as
//     held. Others stay held between two waits that follow one another at once (waits.h).
//   - In kWaitsHalf every other row of waits (waits.h) is let be: the group loses the mean of what it loses in
//     kWaitsWide and with nobody held. That suits one that `free` makes a little too slow.
//   - While no wait is near, others below such a group have the windows of kRestMode. Some time before the next wait is
//     expected they are shut, so that what they have in flight has finished by then: that costs them less than narrow
//     windows would, and the host waits no longer. If the wait does not come, they are opened again after a few such
//     times, with the mode's window until it does. Between requests wide windows need a lead of at least kRestLeadNs.
//   - Pace is busy time per launch: the length of requests of one kind, the inverse of the rate of a program that
//     launches all the time. If the client reports its waits, only these are compared. The host's own time, in which
//     others have no part, is taken as equal, since a processor's speed varies by more than the effect sought.
//     The whole time counts after all if it is slower by far more than chance explains (kSureErrors).
//   - An end of its work that no call shows is known late unless somebody waits for it, as in the held block. It would
//     seem to be faster there. So while a pair is measured, ends are known soon in both blocks (IsMeasured).
//   - Users also wait while the host prepares the next burst. So pauses count as host time: each burst earns a credit
//     of a quarter of its time, up to kMaxPauseNs in all. A longer pause does not count: the program has nothing to do.
//   - With a deadline, early is worth nothing: a burst counts as at least its deadline less a reserve
//     (kDeadlineReserve).
//   - A block is some work in one mode while a less important client has work there: a few bursts, or a tenth of a
//     second of a long one. It begins and ends with a request, the bursts between pauses that do not count, if that is
//     short: what others have in flight delays a request's first burst, which both blocks of a pair must have. A pair
//     is two neighbouring blocks, one held and one in another mode. Only blocks of a pair are compared: a core's speed
//     and a program's behaviour change by more than the tolerance within seconds.
//   - A pair gives the logarithm of the other mode's ratio to held. Two averages count: over all pairs, and of what
//     lies outside twice the tolerance (the tail). Pairs follow one another until the verdict is clear, kPairs at most.
//   - An answer that is in force without being known, since the group has connected again or others have come, is tried
//     first. Else `free` is. If that is too slow, the search halves what is left of the list of modes each time, since
//     a mode that costs others more delays the group no more; held-wide, which is no such step, comes last. Meanwhile
//     the cheapest mode that is known to be good enough is in force; after one that turned out a little too slow
//     (kSlightly), it is the one that is being tried, so that others are not held for that. Then the answer, the next
//     cheaper mode and `free` are tried in rotation: once after kFirstWaitNs, since the program may have changed during
//     the search; then after kShortestWaitNs, and after twice as long each time the answer stays the same, up to
//     kLongestWaitNs.
//   - Few requests are delayed by trials. After a pair in a mode that costs others less than the answer and is clearly
//     slower, the group works kSparedPart times as long undisturbed as that block's launches, or all of a burst's, take
//     while held; the less, the longer others would be held, since they lose meanwhile. In the first search, and in
//     that for other work, kUnsparedPairs follow one another, unless the answer from before is known: the group has
//     just started.
//   - After others ran beside it, a held block counts only from kSettleNs on: what they had in flight takes a part.
//   - Another block ends, even within a burst, once it is clearly slower than the last held one. So it does with a
//     request after a few short bursts that are. Two such pairs are an answer.
//   - A pair on the other side of the tolerance than what is known of its mode is repeated at once. If the repeat is
//     there, too, or farther from what is known than chance explains, that mode is measured again: the program has
//     changed, or some seconds were spoilt, as others' start does. An average alone would take minutes to follow.
//   - What another client has in flight when a burst begins delays some programs and not others: where time slices end
//     it inside a kernel, a burst that keeps the device busy to its end loses nothing, one with gaps loses a context
//     switch in each. So a wide window between bursts is tried as well (kHeldWide), unless several others have work at
//     a time (kOftenSeveral): they take turns, and would have the work of two in flight whenever a turn ends.
//   - What the others lose is counted by their launches in the same blocks. How long they are held does not tell it of
//     a small window: a training by NCCL loses much by one below a graph that seldom works
//     (docs/results/h200x2-unused-3c09ee08-dirty-windows.md). So with kHeldWide the group may be slower by as much as
//     they are faster, less a standard error, up to kMostForGain times the tolerance.
//   - While others are held whenever it is busy, and that is less than kCheap of the time in which they have work, no
//     mode but held-wide is tried. The tolerance is at most the part of the others' working time in which they would be
//     held: the group loses no more than they can gain.
//   - The tolerance counts more than once if several others have work, up to kMaxOthers: what may be given up for one
//     that is held all the time may be given up for another. One that would be held for half of its time counts half.
//     If more have work than when it was measured, the measured number counts. An answer that costs more than it may,
//     now that others would be held less, is tried soon, but not within kRelearnNs of its beginning.
//   - Results hold beside the clients, under the answers of groups above and for the work that they were measured with:
//     such an answer sets windows and slices below it. Once these have been others for kOthersLastNs, or the group's
//     pace is quite another (a program that starts does other work than later), all is measured again, while the
//     answer stays until shown wrong. This happens at most once in kRelearnNs, and half as often after each time the
//     answer was the same, down to once in kLongestRelearnNs.
//   - The time until the next trial passes while the group is open and contended, so that trials cost a bounded part of
//     that time; a quarter as fast while others work and it does not, unless they are held for less than kCheap.
//   - While `free` is known to be good enough, what the others do decides nothing until the next trial. So they may be
//     untracked until then (arbiter_aside.cc), and are taken to have work all the time. When it is due, they are
//     tracked again; if none is contended for kWatchNs then, it waits for kShortestWaitNs more.
//   - The answer changes at most once in kDwellNs; if another is known sooner, a pair is due when that time is over. A
//     mode is taken if it is slower by no more than the tolerance, and left once it is slower than that by more than
//     chance explains.
//
// By lying about its launches a client decides only whether others are held for itself and, of its own window between
// the bursts of a group above, whether it is wide although that makes the group up to kMostForGain times the tolerance
// slower. Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Benefit {
 public:
  static constexpr std::uint32_t kPairs = 32;
  static constexpr std::uint32_t kFewestPairs = 4;
  static constexpr std::uint64_t kFirstWaitNs = 2 * kNsPerS;
  static constexpr std::uint64_t kShortestWaitNs = 16 * kNsPerS;
  static constexpr std::uint64_t kLongestWaitNs = 32 * kNsPerS;
  static constexpr std::uint64_t kDwellNs = 5 * kNsPerS;
  // In the long run far fewer than 1 % of its bursts are in such blocks, or behind one.
  static constexpr double kSparedPart = 500;
  // Enough for a first search.
  static constexpr std::uint8_t kUnsparedPairs = 8;
  static constexpr double kCheap = 0.03;
  // Of the time in which others have work. kHeldWide stays in force until it is twice as much.
  static constexpr float kOftenSeveral = 0.25F;
  static constexpr double kDeadlineReserve = 0.1;
  static constexpr double kMostlyWaits = 0.9;
  static constexpr std::uint64_t kMaxPauseNs = 5 * kNsPerMs;
  static constexpr std::uint64_t kSettleNs = 20 * kNsPerMs;
  static constexpr BenefitMemory::Mode kRestMode = BenefitMemory::Mode::kWaitsWide;
  static constexpr std::uint32_t kMaxOthers = 4;
  // Others are shut ahead of a wait for no more than this many times Allowance::ahead_us.
  static constexpr std::uint64_t kMostAhead = 3;
  static constexpr std::uint64_t kOthersLastNs = kNsPerS;
  // Where nobody needs it sooner (NeedsCount), a number of launches is known so late.
  static constexpr std::uint64_t kLateCountNs = 2 * kNsPerMs;
  static constexpr std::uint64_t kRelearnNs = 10 * kNsPerS;
  static constexpr std::uint64_t kLongestRelearnNs = 40 * kNsPerS;
  static constexpr std::uint64_t kWatchNs = 2 * kNsPerS;
  static constexpr std::uint32_t kFewestWholePairs = 8;
  static constexpr double kSureErrors = 3;
  static constexpr double kSlightly = 3;     // of the tolerance
  static constexpr double kMostForGain = 2;  // likewise

  Benefit() = default;
  // Of the modes that are of use for the group; kHeld: there is none.
  static BenefitMemory::Mode CheapestOf(const BenefitMemory& memory);
  // Whether this average is only a lower bound: a clearly slower block ends before it shows how slow it is.
  static bool IsLowerBound(double ratio);
  // `tolerance_percent`: how much slower the group may be beside one other; 0: others are always held. `linger_us`:
  // after that time in a pause others are let in.
  Benefit(std::uint32_t tolerance_percent, std::uint32_t linger_us, std::uint64_t now_ns);

  bool Measures() const { return tolerance_percent_ != 0; }

  struct Work {
    std::uint64_t launched = 0;         // since the last decision
    bool busy = false;                  // it has work now
    bool waits = false;                 // busy, and its host waits for the device
    bool others_work = false;           // a less important client has work on one of its devices
    bool several_work = false;          // more than one has, on one device
    bool others_aside = false;          // they are untracked
    bool contended = false;             // busy and others_work on one device
    std::uint64_t others_launched = 0;  // by less important clients since the last decision, while a pair is measured
    std::uint64_t deadline_ns = 0;
  };
  // 1. Before groups are ordered: accounts for the time since the last decision. Changes the mode when a block is over.
  void Advance(BenefitMemory& memory, const Work& work) const;
  // 2. Once all groups have advanced, so that their answers are known.
  void NoteOthers(BenefitMemory& memory, const Others& others) const;
  // 3. Whether a pair is due, which Begin begins.
  bool IsDue(const BenefitMemory& memory) const;
  void Begin(BenefitMemory& memory) const;
  // 4. Decides whether others are held for it now.
  void SetHolds(BenefitMemory& memory) const;
  // 5. After admission. `open`: busy and not held itself. Brings `next_decision_ns` forward to the next trial or the
  // end of a block or linger.
  void Note(BenefitMemory& memory, bool open, std::uint64_t& next_decision_ns) const;
  // 6. Whether others may be untracked from now on. If that will be so later, brings `next_decision_ns` forward.
  bool MayLeaveOthers(const BenefitMemory& memory, std::uint64_t& next_decision_ns) const;
  // They are.
  void LeaveOthers(BenefitMemory& memory, const Work& work) const;
  // 0. In a later decision, before all others: whether they still may be.
  bool MayStayAside(const BenefitMemory& memory) const;
  // How long it works between two pauses in which others are let in: on average, or for as long as the present spell
  // makes that; 0: unknown.
  static std::uint64_t UsualSpellNs(const BenefitMemory& memory);

 private:
  using Mode = BenefitMemory::Mode;
  void Count(BenefitMemory& memory, const Work& work) const;
  static void EndSpell(BenefitMemory& memory);
  void CountPause(BenefitMemory& memory, BenefitMemory::Block& block) const;
  static void NoteWork(BenefitMemory& memory, const Work& work);
  static void UseAnswer(BenefitMemory& memory);
  static bool IsFreeKnown(const BenefitMemory& memory);
  bool Relearn(BenefitMemory& memory) const;
  void RelearnOtherWork(BenefitMemory& memory) const;
  static void Forget(BenefitMemory& memory);
  void NotePace(BenefitMemory& memory) const;
  void EndBlock(BenefitMemory& memory) const;
  void SetMode(BenefitMemory& memory, Mode mode) const;
  void AddPair(BenefitMemory& memory) const;
  // benefit_search.cc
  enum class Verdict { kUnknown, kFine, kSlower };
  static bool IsOfUse(const BenefitMemory& memory, Mode mode);
  Verdict VerdictOf(const BenefitMemory& memory, Mode mode) const;
  bool IsSlightlySlower(const BenefitMemory& memory, Mode mode) const;
  Mode AnswerOf(const BenefitMemory& memory) const;
  Mode CandidateOf(const BenefitMemory& memory, Mode answer) const;
  Mode NextTrial(const BenefitMemory& memory) const;
  void Learn(BenefitMemory& memory, const BenefitMemory::Measured& pair) const;
  void Conclude(BenefitMemory& memory) const;
  // Whether the mode is in force: it changes at most once in kDwellNs.
  bool Change(BenefitMemory& memory, Mode mode) const;
  void Settle(BenefitMemory& memory, Mode mode) const;

  // Of a mode, as a logarithm of a ratio.
  double ToleranceOf(const BenefitMemory& memory, Mode mode) const;

  std::uint32_t tolerance_percent_ = 0;
  std::uint64_t linger_ns_ = 0;
  std::uint64_t now_ns_ = 0;
};

// The modes' names, by mode.
inline constexpr std::string_view kModeWords[BenefitMemory::kModes] = {
    "held",       "held-wide",  "waits-narrowest", "waits-narrow", "waits-medium", "waits-wider",
    "waits-wide", "waits-half", "beside",          "beside-wide",  "free"};
// Costs the others least, and is tried first.
inline constexpr BenefitMemory::Mode kCheapest = BenefitMemory::Mode::kFree;
inline constexpr std::string_view ModeText(BenefitMemory::Mode mode) {
  return kModeWords[static_cast<std::size_t>(mode)];
}
// The group holds others whenever it is busy.
inline constexpr bool HoldsThroughout(BenefitMemory::Mode mode) {
  return mode <= BenefitMemory::Mode::kHeldWide;
}
// The group holds no others, even while busy.
inline constexpr bool IsBeside(BenefitMemory::Mode mode) {
  return mode >= BenefitMemory::Mode::kBeside;
}
inline constexpr bool IsWhileItWaits(BenefitMemory::Mode mode) {
  return !HoldsThroughout(mode) && !IsBeside(mode);
}

// What clients below a group have while they are not held.
struct Allowance {
  std::uint32_t window_percent;  // of Settings::window_us, in flight
  bool is_each;                  // each has so much; else all busy ones together
  // Of each, where time slices are a lever (slices.h); 0: the driver's own. Unused where HoldsThroughout.
  std::uint32_t slice_us;
  // They are held so long before a wait that is expected (waits.h).
  std::uint32_t ahead_us;
};
inline constexpr Allowance AllowanceOf(BenefitMemory::Mode mode) {
  // Measured on an H100 and an H200 (driver 580.159.04), whose own slices are 2 ms and whose context switch costs about
  // 0.3 ms. Beside a group that holds them while it waits, others end their turn because their window does: short
  // slices only add context switches, and shorten no wait. Beside one that never holds them, 1 ms delays it less than
  // the driver's own (docs/explanation/tolerance.md has the runs); it costs them some of their rate, 200 µs half of it.
  // kBeside also has the smaller window, which is what tells it from kBesideWide where time slices are no lever. All
  // windows together are far less than a block, so that a held block is not spent on draining them (kSettleNs).
  constexpr Allowance kAllowances[BenefitMemory::kModes] = {
      {100, false, 0, 0},     {800, false, 0, 0},   {50, false, 0, 3'000}, {100, false, 0, 2'000},
      {150, false, 0, 1'400}, {200, false, 0, 900}, {400, false, 0, 0},    {400, false, 0, 0},
      {400, true, 1'000, 0},  {800, true, 0, 0},    {3'200, false, 0, 0},
  };
  return kAllowances[static_cast<std::size_t>(mode)];
}
inline std::optional<BenefitMemory::Mode> ModeFrom(std::string_view text) {
  const auto* const found = std::find(std::begin(kModeWords), std::end(kModeWords), text);
  if (found == std::end(kModeWords)) return std::nullopt;
  return static_cast<BenefitMemory::Mode>(found - std::begin(kModeWords));
}
// Whether others have wider windows than those of `mode`, the one in force, since the last Advance: those of
// Benefit::kRestMode. And when to ask again if nothing else happens; kNever: never.
struct Rest {
  bool is_on = false;
  std::uint64_t ask_again_ns = kNever;
};
Rest RestOf(const BenefitMemory& memory, BenefitMemory::Mode mode);
// Whether launches must be known as they happen: a pair is measured, or a wait is expected by their number.
bool NeedsCount(const BenefitMemory& memory);
// A pair is measured.
bool IsMeasured(const BenefitMemory& memory);
// What being held costs those below it, in percent of what they launch where the mode is in force. Nullopt: unknown.
std::optional<double> CostPercent(const BenefitMemory& memory, BenefitMemory::Mode mode);
// The group has connected again, or is another process of a program that is known, and had this answer: it stays until
// it is known to be wrong. False, and without effect, if the group has an answer.
bool Recall(BenefitSlot& benefit, BenefitMemory::Mode answer);
// The search for the mode has come to its end at least once, or was begun and has none left to try: others have come,
// or they are held too seldom for it to matter.
bool IsSettled(const BenefitMemory& memory);
// A search is under way, the first or a later one: the answer in force may not be what it finds.
bool IsSearching(const BenefitMemory& memory);
// The mode whose comparison shows best what holding gives; nullopt: nothing was compared.
std::optional<BenefitMemory::Mode> MostTelling(const BenefitMemory& memory);
// By how many percent a mode is slower than held; `ratio`: a logarithm from the memory.
double SlowerPercent(float ratio);
// How much slower a mode makes the group on average, as the logarithm of a ratio: by what is compared, or by the whole
// time if that has surely grown by more (kSureErrors).
float SlowerBy(const BenefitMemory::Comparison& known);

}  // namespace xschedd::policy
