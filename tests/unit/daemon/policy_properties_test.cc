// What must hold under every policy in every state, checked on random traces (policy_trace.h). A failure names policy,
// seed and step: the trace is made again from these.
#include <deque>
#include <map>
#include <set>

#include "daemon/policy/fair.h"
#include "tests/catch.h"
#include "tests/unit/daemon/policy_trace.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

constexpr int kSeeds = 200;
constexpr int kSteps = 2'000;

bool IsBusy(const State& state, std::uint32_t group) {
  return std::any_of(state.tenants.begin(), state.tenants.end(),
                     [&](const Tenant& tenant) { return tenant.group == group && tenant.busy; });
}

bool Lingers(const State& state, const Tenant& tenant, std::uint64_t now) {
  return !tenant.busy && tenant.idle_since_ns != 0 && tenant.idle_since_ns + state.settings.linger_us * kNsPerUs > now;
}

// Each returns what is wrong, or nothing. Not CHECKs: there are millions of them.
using Wrong = const char*;

// A group is open on all its devices or on none.
Wrong Gangs(const State& state, const Decision& decision) {
  std::vector<int> held(state.groups.size(), -1);
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    if (!state.tenants[i].busy) continue;
    int& seen = held[state.tenants[i].group];
    const int now = decision.gates[i].held ? 1 : 0;
    if (seen != -1 && seen != now) return "a group is open in one place and held in another";
    seen = now;
  }
  return nullptr;
}

// Where somebody has work, somebody runs; but for a moment after one that has just become idle (linger), and unless
// each of those who have work there is a group that also has work on another device, where somebody is open or lingers.
Wrong Conserves(const State& state, const Decision& decision, std::uint64_t now) {
  std::vector<bool> used(state.devices.size());
  std::vector<bool> lingering(state.devices.size());
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    const Tenant& tenant = state.tenants[i];
    if (state.groups[tenant.group].hold) continue;
    if (tenant.busy && !decision.gates[i].held) used[tenant.device] = true;
    if (Lingers(state, tenant, now)) lingering[tenant.device] = true;
  }
  for (const Tenant& tenant : state.tenants) {
    if (!tenant.busy || state.groups[tenant.group].hold) continue;
    if (used[tenant.device] || lingering[tenant.device]) continue;
    const bool kept_elsewhere = std::any_of(state.tenants.begin(), state.tenants.end(), [&](const Tenant& other) {
      return other.group == tenant.group && other.busy && (used[other.device] || lingering[other.device]);
    });
    if (!kept_elsewhere) return "a device has work and nobody is open";
  }
  return nullptr;
}

int FairLevel(const State& state, const GroupMemory& memory) {
  std::uint64_t quantum = state.settings.fair_quantum_ms * kNsPerMs;
  std::uint64_t threshold = 0;
  int level = 0;
  while (level + 1 < kFairLevels) {
    threshold += quantum;
    quantum *= 4;
    if (memory.fair.attained_ns < threshold) break;
    ++level;
  }
  return level;
}

// Whether the policy lets `a` and `b`, busy and of one priority, be open beside each other. Written from the promises,
// not from the code.
bool MayRunTogether(const State& state, const Decision& decision, std::uint32_t a, std::uint32_t b) {
  const auto earliest = [&](std::uint32_t group, bool less_usual) {
    std::uint64_t time = kNever;
    for (const Tenant& tenant : state.tenants) {
      if (tenant.group != group || !tenant.busy || tenant.deadline_ns == 0) continue;
      time = std::min(time, tenant.deadline_ns - (less_usual ? tenant.usual_ns : 0));
    }
    return time;
  };
  switch (state.settings.name) {
    case Name::kDeadline:
      return earliest(a, false) == earliest(b, false);
    case Name::kLaxity: {
      const bool a_urgent = decision.memory[a].urgent_ns != 0;
      const bool b_urgent = decision.memory[b].urgent_ns != 0;
      if (a_urgent != b_urgent) return false;
      // Several tenants of a group may be urgent or not; then only whether the group is.
      const bool waits = (earliest(a, true) == kNever) != (earliest(b, true) == kNever);
      return a_urgent || !waits || state.tenants.size() != state.groups.size();
    }
    case Name::kFair:
      return FairLevel(state, decision.memory[a]) == FairLevel(state, decision.memory[b]);
    default:
      return true;
  }
}

// Nobody is open beside a busy open one of higher rank but by the guard; and whoever has a more important neighbour has
// a window, all of them together no more than the budget.
Wrong Inversions(const State& state, const Decision& decision) {
  std::vector<std::uint64_t> windows(state.devices.size());
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    const Tenant& tenant = state.tenants[i];
    const Gate& gate = decision.gates[i];
    if (gate.held) continue;
    bool background = false;
    for (std::size_t j = 0; j < state.tenants.size(); ++j) {
      const Tenant& other = state.tenants[j];
      const Gate& others = decision.gates[j];
      if (other.device != tenant.device || other.group == tenant.group || state.groups[other.group].hold) continue;
      const int difference = state.groups[tenant.group].priority - state.groups[other.group].priority;
      background = background || difference < 0;
      if (!tenant.busy || !other.busy || others.held) continue;
      if (gate.why == Why::kGuard || others.why == Why::kGuard) continue;
      if (difference != 0) return "open beside a more important one";
      if (!MayRunTogether(state, decision, tenant.group, other.group)) return "open beside one that goes before";
    }
    if (!background || state.settings.name == Name::kFifo) continue;
    if (gate.window_us == 0) return "no window below a more important one";
    if (tenant.busy) windows[tenant.device] += gate.window_us;
  }
  for (const std::uint64_t sum : windows)
    if (sum > state.settings.window_us) return "windows exceed the budget";
  return nullptr;
}

// Whoever is held for somebody is held for one that is there, and by a rule that fits.
Wrong Reasons(const State& state, const Decision& decision) {
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    const Tenant& tenant = state.tenants[i];
    const Gate& gate = decision.gates[i];
    if (!gate.held) {
      if (gate.held_for != 0) return "open, and for somebody";
      continue;
    }
    if (gate.why == Why::kHold) continue;
    const auto found = std::find_if(state.tenants.begin(), state.tenants.end(),
                                    [&](const Tenant& other) { return other.client == gate.held_for; });
    if (found == state.tenants.end()) return "held for nobody";
    const Tenant& other = *found;
    if (other.group == tenant.group) return "held for itself";
    if (gate.why == Why::kGang || gate.why == Why::kTurn) continue;
    const int difference = state.groups[other.group].priority - state.groups[tenant.group].priority;
    if (gate.why == Why::kPriority && difference <= 0) return "held by priority for one that is not more important";
    const bool same_class = gate.why == Why::kShare || gate.why == Why::kDeadline || gate.why == Why::kFair;
    if (same_class && difference != 0) return "held by a rule of its class for one outside it";
    if (gate.why == Why::kLinger ? other.busy : (!other.busy && gate.why != Why::kShare))
      return "held for the wrong state";
  }
  return nullptr;
}

// The same decision for the same things listed otherwise.
Wrong OrderMatters(Trace& trace, const Decision& decision) {
  const State& state = trace.state;
  const auto permutation = [&](std::size_t size) {
    std::vector<std::uint32_t> order(size);
    for (std::uint32_t i = 0; i < size; ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), trace.Random());
    return order;
  };
  const auto tenants = permutation(state.tenants.size());
  const auto groups = permutation(state.groups.size());
  const auto devices = permutation(state.devices.size());
  State other;
  other.settings = state.settings;
  std::vector<std::uint32_t> group_at(groups.size());
  std::vector<std::uint32_t> device_at(devices.size());
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    other.groups.push_back(state.groups[groups[i]]);
    group_at[groups[i]] = i;
  }
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    other.devices.push_back(state.devices[devices[i]]);
    device_at[devices[i]] = i;
  }
  for (const std::uint32_t index : tenants) {
    other.tenants.push_back(state.tenants[index]);
    other.tenants.back().group = group_at[other.tenants.back().group];
    other.tenants.back().device = device_at[other.tenants.back().device];
  }
  const Decision shuffled = Decide(other, trace.now_ns);
  for (std::size_t i = 0; i < tenants.size(); ++i)
    if (!(shuffled.gates[i] == decision.gates[tenants[i]])) return "gates depend on the order of a list";
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (!(shuffled.memory[i] == decision.memory[groups[i]])) return "memory depends on the order of a list";
  if (shuffled.next_look_ns != decision.next_look_ns) return "the next look depends on the order of a list";
  return nullptr;
}

// How long each group has been open of the last second in which it had work all the time.
class Starvation {
 public:
  explicit Starvation(std::size_t groups) : groups_(groups) {}

  Wrong After(const State& state, const Decision& decision, std::uint64_t now) {
    const std::uint64_t turn = state.settings.guard_ms_per_s * kNsPerMs;
    for (std::uint32_t index = 0; index < groups_.size(); ++index) {
      Seen& seen = groups_[index];
      if (!IsBusy(state, index) || state.groups[index].hold) {
        seen = Seen{};
        continue;
      }
      if (seen.busy_since == 0) seen.busy_since = now;
      bool open = false;
      for (std::size_t i = 0; i < state.tenants.size(); ++i)
        open = open || (state.tenants[i].group == index && state.tenants[i].busy && !decision.gates[i].held);
      if (seen.open_since != 0) seen.open.push_back({seen.open_since, now});
      seen.open_since = open ? now : 0;
      const std::uint64_t from = now - kSpan;
      while (!seen.open.empty() && seen.open.front().second <= from)
        seen.open.pop_front();
      if (seen.busy_since > from) continue;
      std::uint64_t sum = 0;
      for (const auto& [start, end] : seen.open)
        sum += end - std::max(start, from);
      if (sum + kNsPerMs < turn) return "starved beyond the guard";
    }
    return nullptr;
  }

 private:
  static constexpr std::uint64_t kSpan = kNsPerS + kNsPerMs;
  struct Seen {
    std::uint64_t busy_since = 0;
    std::uint64_t open_since = 0;
    std::deque<std::pair<std::uint64_t, std::uint64_t>> open = {};
  };
  std::vector<Seen> groups_;
};

Wrong FirstWrong(std::initializer_list<Wrong> list) {
  for (const Wrong wrong : list)
    if (wrong != nullptr) return wrong;
  return nullptr;
}

// `reasons` collects why somebody was open or held.
void RunTrace(Name name, std::uint32_t seed, std::set<Why>& reasons) {
  Trace trace(name, seed);
  Decider decider;
  Starvation starvation(trace.state.groups.size());
  const std::uint64_t start = trace.now_ns;
  std::uint64_t looks = 0;
  std::uint64_t changes = 1;
  for (int step = 0; step < kSteps; ++step) {
    const Decision& decision = decider.Decide(trace.state, trace.now_ns);
    const State& state = trace.state;
    Wrong wrong = FirstWrong({
        decision.next_look_ns > trace.now_ns ? nullptr : "the next look is not in the future",
        Gangs(state, decision),
        Conserves(state, decision, trace.now_ns),
        name == Name::kFifo ? nullptr : Inversions(state, decision),
        Reasons(state, decision),
        // Where only so many run at a time, guard turns wait for each other, and turns for their end.
        trace.IsLimited() ? nullptr : starvation.After(state, decision, trace.now_ns),
        step % 4 == 0 ? OrderMatters(trace, decision) : nullptr,
    });
    if (wrong != nullptr) {
      FAIL(Text(name) << " seed " << seed << " step " << step << " at " << trace.now_ns - start << " ns: " << wrong);
    }
    for (const Gate& gate : decision.gates)
      reasons.insert(gate.why);
    trace.Apply(decision);
    if (trace.Advance(decision.next_look_ns)) {
      ++changes;
    } else {
      ++looks;
    }
  }
  // Looking again without a reason ends: beside each change there are a few looks (linger, turn, guard), and where
  // shares or levels are near a limit one each half millisecond.
  const std::uint64_t allowed = 3 * changes + (trace.now_ns - start) / (500 * kNsPerUs);
  if (looks > allowed) FAIL(Text(name) << " seed " << seed << ": " << looks << " looks, " << allowed << " allowed");
}

}  // namespace

TEST_CASE("policy properties on random traces") {
  const std::set<Why> common{Why::kOpen, Why::kGuard, Why::kHold, Why::kPriority, Why::kLinger, Why::kGang, Why::kTurn};
  const std::map<Name, Why> own{{Name::kPriority, Why::kShare},
                                {Name::kShare, Why::kShare},
                                {Name::kDeadline, Why::kDeadline},
                                {Name::kLaxity, Why::kDeadline},
                                {Name::kFair, Why::kFair}};
  for (const std::string_view text : kNames) {
    const Name name = *NameFrom(text);
    std::set<Why> reasons;
    for (std::uint32_t seed = 1; seed <= kSeeds; ++seed)
      RunTrace(name, seed, reasons);
    // The traces must reach what they are to check.
    std::set<Why> expected{Why::kOpen, Why::kHold};
    if (name != Name::kFifo) {
      expected = common;
      expected.insert(own.at(name));
    }
    CHECK(reasons == expected);
  }
}

TEST_CASE("the order of simultaneous events does not matter") {
  // Whatever happens between two decisions is one State: the only order left is that of lists, above. What remains is
  // that a decision made between two events of one instant changes nothing of the one after both.
  for (const std::string_view text : kNames) {
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
      Trace trace(*NameFrom(text), seed);
      Decider decider;
      for (int step = 0; step < 200; ++step) {
        const Decision once = decider.Decide(trace.state, trace.now_ns);
        State again = trace.state;
        for (std::size_t i = 0; i < again.groups.size(); ++i)
          again.groups[i].memory = once.memory[i];
        for (Tenant& tenant : again.tenants)
          tenant.ran_ns = 0;
        const Decision& twice = decider.Decide(again, trace.now_ns);
        if (twice.gates != once.gates || twice.memory != once.memory || twice.next_look_ns != once.next_look_ns) {
          FAIL(text << " seed " << seed << " step " << step << ": deciding twice is not deciding once");
        }
        trace.Apply(once);
        trace.Advance(once.next_look_ns);
      }
    }
  }
  SUCCEED();
}
