// A simulated important tenant beside one that always has work, to test what is learnt about holding: its launches have
// one duration while the other is held and another while the other runs. Virtual time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>

#include "daemon/policy/benefit.h"
#include "tests/unit/daemon/policy_world.h"

namespace xschedd::policy::test {

using Mode = BenefitMemory::Mode;

struct Behaviour {
  std::uint64_t launches = 100;  // in a burst
  double held_us = 100;          // busy time of a launch
  double beside_us = 100;
  double beside_for_window = 0;  // added to beside_us for each µs that others may have in flight
  // Where others are held: how much a request's first burst is delayed for each µs beyond the usual window that
  // they had in flight when it began.
  double late_for_window = 1;
  double others_gain = 0;               // how much faster the other launches in kHeldWide: 0.1 is a tenth
  bool is_late_while_it_waits = false;  // the same where others are held only then; else it is in waits_then_held_us
  // How long its host waits at the end of a burst, if its client reports waits: while others are held, while they run
  // beside it, and if they are held from the beginning of the wait. If they are held before that, what they had in
  // flight then drains, at kDrain.
  double waits_held_us = 0;
  double waits_beside_us = 0;
  double waits_then_held_us = 0;
  // Unless 0, replaces waits_then_held_us: waits_held_us plus this for each µs that others may have in flight.
  double waits_for_window = 0;
  double noise = 0.1;  // standard deviation of a burst's duration
  double drift = 0;    // slow change of all durations, over seconds, as on a core whose clock changes
  std::uint64_t pause_us = 300;
  std::uint32_t bursts = 1;          // of a request
  std::uint64_t rest_us = 0;         // follows the pause after a request's last burst
  std::uint64_t known_us = 0;        // after a burst's end, until the daemon knows of it; a part of the pause
  std::uint64_t known_later_us = 0;  // later than that unless its gate is awaited
};

// A program's own work takes a part of the device.
inline constexpr double kDrain = 0.6;

// Of the other's launches: the time that one takes, and how much their rate varies between two bursts.
inline constexpr double kOthersLaunchNs = 50'000;
inline constexpr double kOthersNoise = 0.1;

struct Core {
  double noise = 0.1;
  double drift = 0;
};
inline constexpr Core kUnsteady{0.2, 0.3};  // its speed changes by half

// Bursts of 10.6 ms while others are held, of which the host waits for 100 µs.
inline Behaviour Chat(double waits_beside_us, double waits_then_held_us, const Core& core = {}) {
  return {.launches = 700,
          .held_us = 15,
          .beside_us = 15,
          .waits_held_us = 100,
          .waits_beside_us = waits_beside_us,
          .waits_then_held_us = waits_then_held_us,
          .noise = core.noise,
          .drift = core.drift};
}

// An important tenant beside one that always has work, on one device, under the daemon's decisions.
class Pair {
 public:
  explicit Pair(std::uint32_t tolerance_percent, std::uint32_t seed = 1) : world_(1, 1), random_(seed) {
    world_.state.settings.tolerance_percent = tolerance_percent;
    world_.state.settings.linger_us = 200;
    world_.state.settings.guard_ms_per_s = 10;
    world_.Add(1, 10, 0, false);
    world_.Add(2, 0, 0, true);
    Decide();
  }

  void Run(const Behaviour& behaviour, double seconds) {
    const auto end = now_ + static_cast<std::uint64_t>(seconds * kNsPerS);
    while (now_ < end)
      Burst(behaviour);
  }

  Mode Settled() const { return world_.state.groups[0].memory.benefit->settled; }
  Mode InForce() const { return world_.state.groups[0].memory.benefit->mode; }
  bool IsSettled() const { return policy::IsSettled(*world_.state.groups[0].memory.benefit); }
  bool IsSearching() const { return policy::IsSearching(*world_.state.groups[0].memory.benefit); }
  bool IsKnown(Mode mode) const { return world_.state.groups[0].memory.benefit->Of(mode).is_known; }
  double CostPercent(Mode mode) const {
    return policy::CostPercent(*world_.state.groups[0].memory.benefit, mode).value_or(-1);
  }
  std::uint64_t Changes() const { return changes_; }
  double BesidePart() const {
    return busy_ns_ == 0 ? 0 : static_cast<double>(beside_ns_) / static_cast<double>(busy_ns_);
  }
  // Of its bursts, those that took more than twice their time while others are held.
  double DelayedPart() const { return bursts_ == 0 ? 0 : static_cast<double>(delayed_) / static_cast<double>(bursts_); }
  void SetDeadline(std::uint64_t ns) { Important().deadline_after_ns = ns; }
  void AddOther(std::uint64_t id) { world_.Add(id, 0, 0, true); }
  void SetWorks(std::size_t tenant, bool works) {
    world_.state.tenants[tenant].busy = works;
    if (!works) world_.state.tenants[tenant].idle_since_ns = now_;
    Decide();
  }
  // Of an idle group above both.
  void SetAnswerAbove(Mode mode) {
    constexpr std::uint64_t kAbove = 9;
    if (world_.state.groups.size() == 2) world_.Add(kAbove, 20, 0, false).idle_since_ns = now_;
    world_.state.groups[2].memory.benefit.Use().settled = mode;
  }
  void ReplaceOther(std::uint64_t client) { world_.state.tenants[1].client = client; }
  // Lets time pass in which neither tenant has work.
  void Rest(double seconds) {
    world_.state.tenants[1].busy = false;
    Decide();
    now_ += static_cast<std::uint64_t>(seconds * kNsPerS);
    world_.state.tenants[1].busy = true;
    Decide();
  }
  // Lets time pass in which nothing changes.
  void Pass(double seconds) {
    now_ += static_cast<std::uint64_t>(seconds * kNsPerS);
    Decide();
  }
  float Longest() const { return world_.state.groups[0].memory.benefit->longest; }
  // What the other says that it launches before each decision, whatever it does.
  void SetOthersClaim(std::uint64_t launches) { others_claim_ = launches; }
  void SetHold(bool hold) {
    world_.state.groups[0].hold = hold;
    Decide();
  }
  void Recall(Mode answer) { policy::Recall(world_.state.groups[0].memory.benefit, answer); }
  void SetStrict(bool strict) { world_.state.groups[0].strict = strict; }
  void SetTolerance(std::uint32_t percent) { world_.state.settings.tolerance_percent = percent; }
  // Of the time since ForgetTimes.
  double AsidePart() const { return static_cast<double>(aside_ns_) / static_cast<double>(now_ - forgot_ns_); }
  bool IsAside() const { return is_aside_; }
  void ForgetTimes() {
    beside_ns_ = busy_ns_ = changes_ = bursts_ = delayed_ = aside_ns_ = 0;
    forgot_ns_ = now_;
  }

 private:
  void Burst(const Behaviour& behaviour) {
    const double more_us = window_us_ - std::min(window_us_, world_.state.settings.window_us);
    const std::uint64_t worked_ns = busy_ns_;
    shut_ns_ = 0;
    others_gain_ = behaviour.others_gain;
    others_speed_ = std::exp(kOthersNoise * normal_(others_random_));
    Important().busy = true;
    Important().busy_since_ns = now_;
    Decide();
    const Mode mode = world_.state.groups[0].memory.benefit->mode;
    const bool is_late = HoldsThroughout(mode) || (IsWhileItWaits(mode) && behaviour.is_late_while_it_waits);
    const double late_us = is_late && burst_ % behaviour.bursts == 0 ? behaviour.late_for_window * more_us : 0;
    if (behaviour.waits_held_us == 0) Work(late_us);
    const double core = 1 + behaviour.drift * std::sin(static_cast<double>(now_ % (10 * kNsPerS)) / 1e9 * 0.628);
    const double own = core * std::exp(behaviour.noise * normal_(random_));
    double left = static_cast<double>(behaviour.launches);
    // The duration of a launch changes only with a new decision.
    while (left > 0) {
      const double beside_us = behaviour.beside_us + behaviour.beside_for_window * window_us_;
      const double us = own * (besides_ ? beside_us : behaviour.held_us);
      const double until = static_cast<double>(next_decision_ - now_) / 1e3 / us;
      const double count = std::min(left, std::max(1.0, until));
      left -= count;
      Work(count * us);
      ++now_;
      Important().launched = static_cast<std::uint64_t>(std::ceil(count));
      if (left > 0) Decide();
    }
    if (behaviour.waits_held_us != 0) Wait(behaviour, late_us);
    const double held_us = own * static_cast<double>(behaviour.launches) * behaviour.held_us + behaviour.waits_held_us;
    ++bursts_;
    if (static_cast<double>(busy_ns_ - worked_ns) > 2e3 * held_us) ++delayed_;
    Important().busy = false;
    Important().idle_since_ns = now_;
    const std::uint64_t known_us = behaviour.known_us + (is_awaited_ ? 0 : behaviour.known_later_us);
    now_ += known_us * kNsPerUs;
    Decide();
    Idle(behaviour.pause_us - known_us);
    if (++burst_ % behaviour.bursts == 0) Idle(behaviour.rest_us);
  }

  void Idle(std::uint64_t us) {
    now_ += us * kNsPerUs;
    if (next_decision_ < now_) Decide();
  }

  void Wait(const Behaviour& behaviour, double late_us) {
    const bool was_beside = besides_ || shut_ns_ != 0;
    const double drained_us = besides_ || shut_ns_ == 0 ? 0 : kDrain * static_cast<double>(now_ - shut_ns_) / 1e3;
    const double window_us = besides_ ? window_us_ : shut_window_us_;
    const double longer_us = behaviour.waits_for_window == 0
                                 ? behaviour.waits_then_held_us - behaviour.waits_held_us - drained_us
                                 : behaviour.waits_for_window * (window_us - drained_us);
    Important().waits = true;
    Decide();
    const double then_held_us = behaviour.waits_held_us + std::max(longer_us, 0.0);
    const double us = besides_ ? behaviour.waits_beside_us : was_beside ? then_held_us : behaviour.waits_held_us;
    Work(us + late_us);
    Important().waits = false;
  }

  void Work(double us) {
    const auto ns = static_cast<std::uint64_t>(us * 1e3);
    now_ += ns;
    busy_ns_ += ns;
    if (besides_) beside_ns_ += ns;
  }

  void Decide() {
    const bool is_wide = InForce() == Mode::kHeldWide;
    const double others_ns = is_other_open_ ? static_cast<double>(now_ - decided_ns_) : 0;
    others_left_ += others_ns / kOthersLaunchNs * others_speed_ * (is_wide ? 1 + others_gain_ : 1);
    world_.state.tenants[1].launched = others_claim_.value_or(static_cast<std::uint64_t>(others_left_));
    others_left_ -= std::floor(others_left_);
    const Decision decision = world_.At(now_);
    next_decision_ = std::min(decision.next_decision_ns, now_ + kNsPerS);
    const bool was_beside = besides_;
    const Gate& other = decision.gates[1];
    is_awaited_ = decision.gates[0].awaited;
    besides_ = Important().busy && !other.held && (other.why == Why::kBeside || !other.tracked);
    if (is_aside_) aside_ns_ += now_ - decided_ns_;
    is_aside_ = !other.tracked;
    is_other_open_ = !other.held || !Important().busy;  // a linger is short
    decided_ns_ = now_;
    if (was_beside && !besides_ && Important().busy) {
      shut_ns_ = now_;
      shut_window_us_ = window_us_;
    }
    // Nothing limits an untracked one. It is no worse than `free`.
    window_us_ =
        is_aside_ ? AllowanceOf(Mode::kFree).window_percent * world_.state.settings.window_us / 100 : other.window_us;
    if (Settled() != before_) ++changes_;
    before_ = Settled();
    Important().launched = 0;
  }

  Tenant& Important() { return world_.state.tenants[0]; }

  World world_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::uint64_t now_ = kNow;
  std::uint64_t next_decision_ = kNever;
  std::uint32_t burst_ = 0;
  bool besides_ = false;
  bool is_awaited_ = false;
  std::uint32_t window_us_ = 0;       // the other tenant's
  std::uint64_t shut_ns_ = 0;         // when it was last shut in this burst; 0: not
  std::uint32_t shut_window_us_ = 0;  // its window until then
  Mode before_ = Mode::kHeld;
  std::uint64_t changes_ = 0;
  std::uint64_t beside_ns_ = 0;
  std::uint64_t busy_ns_ = 0;
  std::uint64_t bursts_ = 0;
  std::uint64_t delayed_ = 0;
  bool is_aside_ = false;
  std::mt19937 others_random_{7};
  double others_gain_ = 0;
  double others_speed_ = 1;
  double others_left_ = 0;  // of a launch
  std::optional<std::uint64_t> others_claim_;
  bool is_other_open_ = true;
  std::uint64_t decided_ns_ = kNow;
  std::uint64_t aside_ns_ = 0;
  std::uint64_t forgot_ns_ = kNow;
};

}  // namespace xschedd::policy::test
