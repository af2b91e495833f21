// What must hold under every policy in every state, checked on random traces (policy_trace.h). A failure names policy,
// seed and step: the trace is made again from these.
#include <cstdlib>
#include <map>
#include <set>

#include "tests/catch.h"
#include "tests/unit/daemon/policy_trace.h"
#include "tests/unit/daemon/policy_waits.h"
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

constexpr std::uint32_t kUsualSeeds = 200;

constexpr int kSteps = 2'000;

bool Tracked(const State& state, const Decision& decision, std::uint32_t group) {
  for (std::size_t i = 0; i < state.tenants.size(); ++i)
    if (state.tenants[i].group == group && decision.gates[i].tracked) return true;
  return false;
}

bool Lingers(const State& state, const Decision& decision, const Tenant& tenant, std::uint64_t now) {
  const bool waits = IsWhileItWaits(decision.memory[tenant.group].benefit->mode);
  const std::uint64_t linger_ns = std::max(state.settings.linger_us * kNsPerUs, waits ? kWaitLingerNs : 0);
  return !tenant.busy && tenant.idle_since_ns != 0 && tenant.idle_since_ns + linger_ns > now;
}

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

// In its turn, or while it goes early, it may return for as long again.
bool KeepsTurn(const State& state, const Decision& decision, const Tenant& tenant, std::uint64_t now) {
  const GroupMemory& memory = decision.memory[tenant.group];
  return !tenant.busy && tenant.idle_since_ns != 0 && (memory.turn_since_ns != 0 || memory.early_since_ns != 0) &&
         tenant.idle_since_ns + 2 * kNsPerUs * state.settings.linger_us > now;
}

bool HasLongLaunches(const GroupMemory& memory) {
  return memory.launched != 0 && memory.ran_ns >= memory.launched * kNsPerMs;
}

// Its group may launch nothing more in its turn, whose last part this is, in which what it has in flight ends.
bool IsEnding(const State& state, const Decision& decision, std::size_t index, std::uint64_t now) {
  const GroupMemory& memory = decision.memory[state.tenants[index].group];
  const std::uint64_t least_ns = state.settings.turn_ms * kNsPerMs / 8;  // it went early, and shares halve turns
  return HasLongLaunches(memory) && memory.turn_since_ns != 0 && decision.gates[index].why == Why::kTurn &&
         now >= memory.turn_since_ns + least_ns;
}

std::uint64_t IdleSince(const State& state, std::uint32_t group) {
  std::uint64_t since_ns = 0;
  for (const Tenant& tenant : state.tenants)
    if (tenant.group == group) since_ns = std::max(since_ns, tenant.idle_since_ns);
  return since_ns;
}

// Another group there pauses in its turn, or this one owes it one, and it has not paused for as long as this one's work
// in flight may take.
bool MayNotBorrow(const State& state, const Decision& decision, std::size_t index, std::uint64_t now) {
  const Tenant& own = state.tenants[index];
  const GroupMemory& memory = decision.memory[own.group];
  if (decision.gates[index].why != Why::kTurn || memory.turn_since_ns != 0 || !HasLongLaunches(memory)) return false;
  const bool owes = memory.owed_ns >= static_cast<std::int64_t>(state.settings.turn_ms * kNsPerMs / 2);
  return std::any_of(state.tenants.begin(), state.tenants.end(), [&](const Tenant& other) {
    return other.device == own.device && other.group != own.group && !IsBusy(state, other.group) &&
           (owes || decision.memory[other.group].turn_since_ns != 0) &&
           now < IdleSince(state, other.group) + state.settings.turn_ms * kNsPerMs / 2;
  });
}

// On each device where clients have work, one is open, with these exceptions: linger after a client that has just
// become idle; long work in flight, which ends before the next turn begins and does not fill another's pause; and
// groups that all also have work on another device, where a client is open or lingers.
Wrong Conserves(const State& state, const Decision& decision, std::uint64_t now, std::uint64_t& endings) {
  std::vector<bool> used(state.devices.size());
  std::vector<bool> lingering(state.devices.size());
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    const Tenant& tenant = state.tenants[i];
    if (state.groups[tenant.group].hold) continue;
    if (Lingers(state, decision, tenant, now) || KeepsTurn(state, decision, tenant, now))
      lingering[tenant.device] = true;
    if (!tenant.busy) continue;
    const bool is_ending = IsEnding(state, decision, i, now);
    if (is_ending) ++endings;
    if (is_ending || MayNotBorrow(state, decision, i, now) || !decision.gates[i].held) used[tenant.device] = true;
  }
  for (const Tenant& tenant : state.tenants) {
    if (!tenant.busy || state.groups[tenant.group].hold) continue;
    if (used[tenant.device] || lingering[tenant.device]) continue;
    const bool kept_elsewhere = std::any_of(state.tenants.begin(), state.tenants.end(), [&](const Tenant& other) {
      return other.group == tenant.group && other.busy && (used[other.device] || lingering[other.device]);
    });
    if (!kept_elsewhere) return "a device has work and no client is open";
  }
  return nullptr;
}

int FairLevel(const State& state, std::uint64_t attained_ns) {
  std::uint64_t quantum = state.settings.fair_quantum_ms * kNsPerMs;
  std::uint64_t threshold = 0;
  int level = 0;
  while (level + 1 < kFairLevels) {
    threshold += quantum;
    quantum *= 4;
    if (attained_ns < threshold) break;
    ++level;
  }
  return level;
}

// The standing of a busy group among busy ones of its priority; the greatest runs first, and equals run together.
// Written from the documented promises, not from the code.
using Place = std::pair<int, std::int64_t>;
Place PlaceOf(const State& state, const Decision& decision, std::uint32_t group) {
  std::uint64_t deadline = kNever;
  std::uint64_t latest_start = kNever;
  bool has_ordinary = false;  // work without a deadline
  for (const Tenant& tenant : state.tenants) {
    if (tenant.group != group || !tenant.busy) continue;
    has_ordinary = has_ordinary || tenant.deadline_ns == 0;
    if (tenant.deadline_ns == 0) continue;
    deadline = std::min(deadline, tenant.deadline_ns);
    latest_start = std::min(latest_start, tenant.deadline_ns - std::min(tenant.deadline_ns, tenant.usual_ns));
  }
  switch (state.settings.name) {
    case Name::kDeadline:
      return {deadline != kNever, deadline == kNever ? 0 : -static_cast<std::int64_t>(deadline)};
    case Name::kLaxity:
      if (decision.memory[group].urgent_ns != 0) return {2, -static_cast<std::int64_t>(latest_start)};
      return {has_ordinary ? 1 : 0, 0};
    case Name::kFair:
      return {-FairLevel(state, decision.memory[group].fair.owner_ns),
              -FairLevel(state, decision.memory[group].fair.attained_ns)};
    default:
      return {};
  }
}

// fair's GPU time of an owner is the sum of its groups'.
Wrong Owners(const State& state, const Decision& decision) {
  if (state.settings.name != Name::kFair) return nullptr;
  for (std::uint32_t group = 0; group < state.groups.size(); ++group) {
    if (state.groups[group].hold || !Tracked(state, decision, group)) continue;
    std::uint64_t sum = decision.memory[group].fair.attained_ns;
    for (std::uint32_t other = 0; other < state.groups.size(); ++other) {
      const Group& view = state.groups[other];
      const bool is_its = other != group && view.owner != kNoOwner && view.owner == state.groups[group].owner;
      if (is_its && !view.hold && IsBusy(state, other) && Tracked(state, decision, other))
        sum += decision.memory[other].fair.attained_ns;
    }
    if (sum != decision.memory[group].fair.owner_ns) return "an owner has another sum than its groups";
  }
  return nullptr;
}

// Work is urgent once its slack is down to the margin, and earlier only if it continues urgent work.
Wrong Urgency(const State& state, const Decision& decision, std::uint64_t now) {
  if (state.settings.name != Name::kLaxity) return nullptr;
  for (std::uint32_t group = 0; group < state.groups.size(); ++group) {
    if (state.groups[group].hold || !IsBusy(state, group)) continue;
    bool must = false;
    for (const Tenant& tenant : state.tenants) {
      if (tenant.group != group || !tenant.busy || tenant.deadline_ns == 0) continue;
      const std::uint64_t left = tenant.usual_ns - std::min(tenant.usual_ns, tenant.burst_ns);
      const std::uint64_t margin = state.settings.laxity_margin_us * kNsPerUs;
      must = must || tenant.usual_ns == 0 || tenant.deadline_ns <= now + left + margin;
    }
    const GroupMemory& before = state.groups[group].memory;
    const bool is = decision.memory[group].urgent_ns != 0;
    if (must && Tracked(state, decision, group) && !is) return "no slack left, and not urgent";
    if (is && !must && before.urgent_ns == 0) return "urgent with slack left";
  }
  return nullptr;
}

// When it holds those below; an equal that tries a freer mode binds all of that priority.
BenefitMemory::Mode ModeOf(const State& state, const Decision& decision, std::uint32_t group) {
  const BenefitMemory& own = *decision.memory[group].benefit;
  BenefitMemory::Mode mode = own.mode;
  for (std::size_t i = 0; i < state.groups.size(); ++i) {
    const BenefitMemory& other = *decision.memory[i].benefit;
    if (i == group || state.groups[i].priority != state.groups[group].priority || other.place == 0) continue;
    if (HoldsThroughout(other.mode)) {
      mode = std::max(mode, other.mode);
    } else if (!own.holds) {
      mode = std::max({mode, other.mode, BenefitMemory::Mode::kBeside});
    }
  }
  return mode;
}

// The mode that decides the windows below this tenant: while no wait is near and after ten seconds without work, a wide
// one.
BenefitMemory::Mode ModeOfWindowBelow(const State& state, const Decision& decision, const Tenant& tenant,
                                      std::uint64_t now_ns) {
  const auto mode = ModeOf(state, decision, tenant.group);
  const bool is_measured = state.settings.tolerance_percent != 0 && !state.groups[tenant.group].strict;
  const bool is_away = !tenant.busy && now_ns - tenant.idle_since_ns >= 10 * kNsPerS;
  if (is_measured && is_away) return std::max(mode, BenefitMemory::Mode::kBesideWide);
  const bool rests = RestOf(*decision.memory[tenant.group].benefit, mode).is_on;
  return is_measured && rests ? std::max(mode, Benefit::kRestMode) : mode;
}

// GPU time that clients below another may have in flight, of the usual mode.
std::uint64_t BudgetUs(const State& state, std::uint32_t device) {
  return std::uint64_t{state.devices[device].windows} * state.settings.window_us;
}

bool IsAside(const Decision& decision, const Tenant& tenant) {
  return decision.memory[tenant.group].aside != 0;
}

// A group that is aside is untracked, has nobody below it, and is the concern of nobody above it. Its devices have no
// deadlines.
Wrong Asides(const State& state, const Decision& decision, std::uint64_t& count) {
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    const Tenant& tenant = state.tenants[i];
    const Group& group = state.groups[tenant.group];
    if (!IsAside(decision, tenant)) continue;
    ++count;
    if (decision.gates[i] != Gate{}) return "aside, and not just open";
    if (group.hold || state.settings.tolerance_percent == 0) return "aside, and may be held";
    if (group.accounted || !state.settings.step_aside) return "aside, and should be measured";
    for (const Tenant& other : state.tenants) {
      if (other.device != tenant.device || state.groups[other.group].hold) continue;
      const Group& above = state.groups[other.group];
      const BenefitMemory& benefit = *decision.memory[other.group].benefit;
      if (other.deadline_after_ns != 0) return "aside beside a deadline";
      if (above.priority < group.priority) return "aside, and above another";
      if (above.priority == group.priority) continue;
      if (above.strict || benefit.settled != kCheapest || benefit.mode != kCheapest || benefit.place != 0)
        return "aside below one that may hold it";
      if (!benefit.others_aside) return "aside, unknown to one above";
    }
  }
  return nullptr;
}

// No client is open beside a busy open one of higher rank, except by the guard or if that one holds no client. A client
// with a more important neighbour has a window, unless it is aside; the windows below a neighbour add up to what its
// mode allows.
Wrong Inversions(const State& state, const Decision& decision, std::uint64_t now_ns) {
  std::vector<std::uint64_t> windows(state.devices.size());
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    const Tenant& tenant = state.tenants[i];
    const Gate& gate = decision.gates[i];
    if (gate.held) continue;
    bool background = false;
    auto mode = kCheapest;  // of the modes above it, the one with the smallest window
    for (std::size_t j = 0; j < state.tenants.size(); ++j) {
      const Tenant& other = state.tenants[j];
      const Gate& others = decision.gates[j];
      if (other.device != tenant.device || other.group == tenant.group || state.groups[other.group].hold) continue;
      const int difference = state.groups[tenant.group].priority - state.groups[other.group].priority;
      background = background || difference < 0;
      if (difference < 0) mode = std::min(mode, ModeOfWindowBelow(state, decision, other, now_ns));
      if (!tenant.busy || !other.busy || others.held) continue;
      if (gate.why == Why::kGuard || others.why == Why::kGuard) continue;
      const Gate& lower = difference < 0 ? gate : others;
      if (difference != 0 && lower.why == Why::kBeside && state.settings.tolerance_percent != 0) continue;
      if (difference != 0 && IsAside(decision, difference < 0 ? tenant : other)) continue;
      if (difference != 0) return "open beside a more important one";
      if (PlaceOf(state, decision, tenant.group) != PlaceOf(state, decision, other.group))
        return "open beside one that goes before";
    }
    if (!background || state.settings.name == Name::kFifo || IsAside(decision, tenant)) continue;
    if (gate.window_us == 0) return "no window below a more important one";
    const Allowance most = AllowanceOf(mode);
    if (gate.window_us > most.window_percent * BudgetUs(state, tenant.device) / 100)
      return "a window larger than the budget";
    if (tenant.busy && !most.is_each) windows[tenant.device] += gate.window_us * 100 / most.window_percent;
  }
  for (std::uint32_t device = 0; device < windows.size(); ++device)
    if (windows[device] > BudgetUs(state, device)) return "windows exceed the budget";
  return nullptr;
}

// A client that is held for another is held for one that exists, by a rule that applies.
Wrong Reasons(const State& state, const Decision& decision) {
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    const Tenant& tenant = state.tenants[i];
    const Gate& gate = decision.gates[i];
    if (!gate.held && gate.why != Why::kBeside) {
      if (gate.held_for != 0) return "open, but held for a client";
      continue;
    }
    if (gate.why == Why::kHold) continue;
    const auto found = std::find_if(state.tenants.begin(), state.tenants.end(),
                                    [&](const Tenant& other) { return other.client == gate.held_for; });
    if (found == state.tenants.end()) return "held for a client that does not exist";
    const Tenant& other = *found;
    if (other.group == tenant.group) return "held for itself";
    if (gate.why == Why::kGang || gate.why == Why::kTurn) continue;
    const int difference = state.groups[other.group].priority - state.groups[tenant.group].priority;
    if (gate.why == Why::kBeside) {
      if (gate.held) return "beside a client, but held";
      if (!other.busy || difference <= 0) return "beside a client that is not more important, or is idle";
      continue;
    }
    if (gate.why == Why::kPriority && difference <= 0) return "held by priority for one that is not more important";
    const bool same_class = gate.why == Why::kShare || gate.why == Why::kDeadline || gate.why == Why::kFair;
    if (same_class && difference != 0) return "held by a rule of its class for one outside it";
    const bool both_busy = tenant.busy && other.busy && gate.why != Why::kShare;
    if (same_class && both_busy && PlaceOf(state, decision, other.group) <= PlaceOf(state, decision, tenant.group))
      return "held for one that does not go before";
    if (gate.why == Why::kLinger ? other.busy : (!other.busy && gate.why != Why::kShare))
      return "held for the wrong state";
  }
  return nullptr;
}

// The decision does not depend on the order of the lists.
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
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (!(shuffled.devices[i] == decision.devices[devices[i]])) return "memory depends on the order of a list";
  if (shuffled.next_decision_ns != decision.next_decision_ns) return "the next decision depends on the order of a list";
  return nullptr;
}

// Where nothing is measured, since what a group above measures may begin or end with anybody's work. `checked`: how
// many gates may wait.
Wrong MayWait(State state, std::uint64_t now_ns, std::uint64_t& checked) {
  state.settings.tolerance_percent = 0;
  const Decision decision = Decide(state, now_ns);
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    if (!decision.gates[i].may_wait) continue;
    ++checked;
    Tenant& tenant = state.tenants[i];
    const Tenant before = tenant;
    tenant.busy = !tenant.busy;
    (tenant.busy ? tenant.busy_since_ns : tenant.idle_since_ns) = now_ns;
    const Decision other = Decide(state, now_ns);
    tenant = before;
    for (std::size_t j = 0; j < state.tenants.size(); ++j)
      if (other.gates[j].held != decision.gates[j].held) return "a gate depends on a client that may wait";
  }
  return nullptr;
}

Wrong FirstWrong(std::initializer_list<Wrong> list) {
  for (const Wrong wrong : list)
    if (wrong != nullptr) return wrong;
  return nullptr;
}

// `reasons` collects the reasons of all gates.
void RunTrace(Name name, std::uint32_t seed, std::set<Why>& reasons, Waits::Reached& reached, std::uint64_t& may_wait) {
  Trace trace(name, seed);
  Decider decider;
  Waits waits;
  const std::uint64_t start = trace.now_ns;
  std::uint64_t decisions = 0;
  std::uint64_t changes = 1;
  for (int step = 0; step < kSteps; ++step) {
    const Decision& decision = decider.Decide(trace.state, trace.now_ns);
    const State& state = trace.state;
    Wrong wrong = FirstWrong({
        decision.next_decision_ns > trace.now_ns ? nullptr : "the next decision is not in the future",
        Gangs(state, decision),
        Conserves(state, decision, trace.now_ns, reached.endings),
        name == Name::kFifo ? nullptr : Inversions(state, decision, trace.now_ns),
        Reasons(state, decision),
        Asides(state, decision, reached.asides),
        Urgency(state, decision, trace.now_ns),
        Owners(state, decision),
        waits.After(state, decision, trace.now_ns, reached),
        step % 4 == 0 ? OrderMatters(trace, decision) : nullptr,
        step % 4 == 2 ? MayWait(state, trace.now_ns, may_wait) : nullptr,
    });
    if (wrong != nullptr) {
      FAIL(Text(name) << " seed " << seed << " step " << step << " at " << trace.now_ns - start << " ns: " << wrong);
    }
    for (const Gate& gate : decision.gates)
      reasons.insert(gate.why);
    for (const DeviceMemory& device : decision.devices)
      if (device.filling.may_join && device.filling.joiners != 0) ++reached.joins;
    trace.Apply(decision);
    if (trace.Advance(decision.next_decision_ns)) {
      ++changes;
    } else {
      ++decisions;
    }
  }
  // Decisions without a change are bounded: a few for each change (linger, turn, guard), and one each half millisecond
  // while shares or levels are near a limit.
  const std::uint64_t allowed = 3 * changes + (trace.now_ns - start) / (500 * kNsPerUs);
  if (decisions > allowed)
    FAIL(Text(name) << " seed " << seed << ": " << decisions << " decisions, " << allowed << " allowed");
}

}  // namespace

TEST_CASE("policy properties on random traces", "[properties]") {
  const std::set<Why> common{Why::kOpen, Why::kGuard, Why::kHold, Why::kPriority, Why::kLinger, Why::kGang, Why::kTurn};
  const std::map<Name, Why> own{{Name::kPriority, Why::kShare},
                                {Name::kShare, Why::kShare},
                                {Name::kDeadline, Why::kDeadline},
                                {Name::kLaxity, Why::kDeadline},
                                {Name::kFair, Why::kFair}};
  for (const std::string_view text : NameTexts()) {
    const Name name = *NameFrom(text);
    std::set<Why> reasons;
    Waits::Reached reached;
    std::uint64_t may_wait = 0;
    for (std::uint32_t seed = 1; seed <= Seeds(kUsualSeeds); ++seed)
      RunTrace(name, seed, reasons, reached, may_wait);
    // The traces must reach the bounds that they check; a few of them may not.
    if (Seeds(kUsualSeeds) < kUsualSeeds) continue;
    std::set<Why> expected{Why::kOpen, Why::kHold};
    if (name != Name::kFifo) {
      expected = common;
      expected.insert(own.at(name));
      if (name == Name::kPriority || name == Name::kShare) expected.insert(Why::kBeside);
    }
    CHECK(reasons == expected);
    INFO(text << ": " << reached.guard << " waits for the guard's slot, " << reached.turns << " for turns");
    CHECK((name == Name::kFifo || reached.guard > 1'000));
    CHECK((name == Name::kFifo || reached.turns >= 5));
    CHECK(((name != Name::kShare && name != Name::kPriority) || reached.shared_turns >= 5));
    INFO(reached.overtimes << " decisions while a turn was too long, " << reached.passes << " turns passed");
    CHECK((name == Name::kShare || (reached.overtimes >= 5) == (name != Name::kFifo)));
    CHECK((reached.passes >= 5) == (name != Name::kFifo && name != Name::kShare));
    CHECK((reached.endings >= 5) == (name != Name::kFifo && name != Name::kShare));
    CHECK((reached.joins >= 500) == (name == Name::kPriority));
    CHECK((reached.asides >= 500) == (name == Name::kPriority || name == Name::kShare));
    CHECK((may_wait >= 1'000) == (name == Name::kPriority || name == Name::kShare));
  }
}

TEST_CASE("the order of simultaneous events does not matter", "[properties]") {
  // All that happens between two decisions is one State, so the order inside is that of lists, checked above. Here: a
  // decision between two events of one instant does not change the decision after both.
  for (const std::string_view text : NameTexts()) {
    for (std::uint32_t seed = 1; seed <= Seeds(200); ++seed) {
      Trace trace(*NameFrom(text), seed);
      Decider decider;
      for (int step = 0; step < 200; ++step) {
        const Decision once = decider.Decide(trace.state, trace.now_ns);
        State again = trace.state;
        for (std::size_t i = 0; i < again.groups.size(); ++i)
          again.groups[i].memory = once.memory[i];
        for (std::size_t i = 0; i < again.devices.size(); ++i)
          again.devices[i].memory = once.devices[i];
        for (Tenant& tenant : again.tenants)
          tenant.ran_ns = tenant.launched = 0;
        const Decision& twice = decider.Decide(again, trace.now_ns);
        if (twice.gates != once.gates || twice.memory != once.memory || twice.devices != once.devices ||
            twice.next_decision_ns != once.next_decision_ns) {
          FAIL(text << " seed " << seed << " step " << step << ": deciding twice is not deciding once");
        }
        trace.Apply(once);
        trace.Advance(once.next_decision_ns);
      }
    }
  }
  SUCCEED();
}
