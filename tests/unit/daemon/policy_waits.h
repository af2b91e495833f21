// Compares how long groups wait, and how much time the guard takes, with the bounds of docs/explanation/policies.md,
// "Nobody waits for ever", on random traces (policy_properties_test.cc). Thread rule: the test's thread.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/daemon/policy_trace.h"
#include "tests/unit/daemon/policy_world.h"

namespace xschedd::policy::test {

// Each check returns what is wrong, or null. They are not CHECKs because there are millions of them.
using Wrong = const char*;

inline bool IsBusy(const State& state, std::uint32_t group) {
  return std::any_of(state.tenants.begin(), state.tenants.end(),
                     [&](const Tenant& tenant) { return tenant.group == group && tenant.busy; });
}

inline bool IsKept(const State& state, Name name, const Tenant& tenant) {
  const Group& own = state.groups[tenant.group];
  return std::any_of(state.tenants.begin(), state.tenants.end(), [&](const Tenant& beside) {
    const Group& other = state.groups[beside.group];
    if (beside.device != tenant.device || beside.group == tenant.group) return false;
    if (other.hold || other.priority != own.priority) return false;
    return name == Name::kShare || other.weight != own.weight;
  });
}

// Whether the group is kept to a share on at least one of its devices.
inline bool KeptToShare(const State& state, std::uint32_t group) {
  const Name name = state.settings.name;
  if (name != Name::kShare && name != Name::kPriority) return false;
  return std::any_of(state.tenants.begin(), state.tenants.end(),
                     [&](const Tenant& tenant) { return tenant.group == group && IsKept(state, name, tenant); });
}

// The ratio of the groups' weights: of those in force if both are kept to a share.
inline double Ratio(const State& state, const Decision& decision, std::uint32_t group, std::uint32_t to) {
  const auto in_force = [&](std::uint32_t index) { return decision.memory[index].share.weight; };
  if (in_force(group) != 0 && in_force(to) != 0)
    return static_cast<double>(in_force(group)) / static_cast<double>(in_force(to));
  return static_cast<double>(state.groups[group].weight) / state.groups[to].weight;
}

// How long a group that is kept to a share may wait for the turns of `others`.
inline std::uint64_t SharersNs(const Settings& settings, std::size_t others, double weightiest) {
  const std::uint64_t turn = settings.turn_ms * kNsPerMs;
  const std::uint64_t slack = settings.share_slack_us * kNsPerUs;
  const double turns = 3 + weightiest * std::max(1.0, static_cast<double>(slack) / static_cast<double>(turn));
  return static_cast<std::uint64_t>(static_cast<double>(others * std::max(turn, 12 * slack)) * turns);
}

class Waits {
 public:
  // How often a group came near its bound: if no group ever waits, nothing is checked.
  struct Reached {
    int guard = 0;
    int turns = 0;
    int shared_turns = 0;
    std::uint64_t asides = 0;
    std::uint64_t joins = 0;      // decisions while somebody joined others' turns
    std::uint64_t endings = 0;    // of turns, in which nobody there may launch
    std::uint64_t overtimes = 0;  // decisions in them, when a turn's time was up
    std::uint64_t passes = 0;     // of groups that owed a turn
  };

  Wrong After(const State& state, const Decision& decision, std::uint64_t now, Reached& reached) {
    const std::uint64_t turn = state.settings.guard_ms_per_s * kNsPerMs;
    const bool changed = Membership(state);
    std::map<std::uint64_t, Wait> next;
    for (std::uint32_t index = 0; index < state.groups.size(); ++index) {
      if (!IsBusy(state, index) || state.groups[index].hold) continue;
      const std::uint64_t id = state.groups[index].id;
      Wait wait = waits_.contains(id) ? waits_[id] : Wait{.since = now};
      // A group that comes to another device may have to wait for one more slot, and others for that group.
      if (changed) ++wait.changes;
      const std::set<std::uint64_t> met = Connected(state, index);
      wait.met.insert(met.begin(), met.end());
      bool open = false;
      bool in_line = false;
      for (std::size_t i = 0; i < state.tenants.size(); ++i) {
        if (state.tenants[i].group != index || !state.tenants[i].busy) continue;
        open = open || !decision.gates[i].held;
        in_line = in_line || decision.gates[i].why == Why::kTurn;
      }
      if (HasPassed(state, decision, index)) {
        wait = Wait{.since = now, .met = met};
        ++reached.passes;
      }
      if (open && wait.open_since == 0) wait.open_since = now;
      if (!open && wait.open_since != 0) {
        const std::uint64_t length = now - wait.open_since;
        if (length >= std::min(kNsPerMs, turn)) wait.had += length;
        wait.open_since = 0;
        if (wait.had >= turn) wait = Wait{.since = now, .met = met};
      }
      const std::uint64_t bound = (wait.met.size() + 1 + wait.changes) * kNsPerS;
      if (!open && turn != 0 && now - wait.since > bound) return "starved beyond the guard";
      reached.guard += !open && turn != 0 && now - wait.since > kNsPerS;

      if (open || !in_line) {
        wait.line_since = 0;
        wait.overtime = 0;
        wait.changes_in_line = 0;
        wait.line.clear();
        wait.kept = false;
        wait.weightiest = 0;
      } else if (wait.line_since == 0) {
        wait.line_since = now;
      }
      if (wait.line_since != 0) {
        wait.line.insert(met.begin(), met.end());
        if (overtime_) wait.overtime += now - before_;
        const std::uint64_t in_line_ns = now - wait.line_since - std::min(wait.overtime, now - wait.line_since);
        // Each time that one of them begins or stops holding others, it may run first once more.
        for (std::uint32_t other = 0; other < state.groups.size(); ++other) {
          const bool changes = state.groups[other].memory.benefit->holds != decision.memory[other].benefit->holds;
          wait.changes_in_line += changes && met.contains(state.groups[other].id) ? 1 : 0;
        }
        const std::uint64_t turns = (wait.line.size() + wait.changes_in_line) * state.settings.turn_ms * kNsPerMs;
        wait.kept = wait.kept || KeptToShare(state, index);
        for (std::uint32_t other = 0; other < state.groups.size(); ++other)
          wait.weightiest = std::max(wait.weightiest, Ratio(state, decision, other, index));
        if (!wait.kept && in_line_ns > turns) return "waited for too many turns";
        if (wait.kept && in_line_ns > SharersNs(state.settings, wait.line.size() - 1, wait.weightiest))
          return "waited for too many turns of those who share";
        reached.shared_turns += wait.kept && in_line_ns > state.settings.turn_ms * kNsPerMs;
        reached.turns += in_line_ns > state.settings.turn_ms * kNsPerMs;
      }
      next[id] = std::move(wait);
    }
    waits_ = std::move(next);
    before_ = now;
    overtime_ = false;
    for (std::uint32_t index = 0; index < state.groups.size(); ++index) {
      const GroupMemory& memory = decision.memory[index];
      const std::uint64_t turn_ns = state.settings.turn_ms * kNsPerMs;
      if (memory.turn_since_ns == 0 || now < memory.turn_since_ns + turn_ns) continue;
      overtime_ = true;
      reached.overtimes += memory.ending_since_ns != 0;
      if (memory.ending_since_ns != 0 && now > memory.turn_since_ns + 2 * turn_ns + kNsPerS) return "a turn has no end";
    }
    return Budget(state, decision, now, turn);
  }

 private:
  struct Wait {
    std::uint64_t since = 0;
    std::uint64_t open_since = 0;
    std::uint64_t had = 0;
    std::uint64_t changes = 0;
    std::set<std::uint64_t> met = {};  // itself and the groups that devices connected it with during the wait
    std::uint64_t changes_in_line = 0;
    std::uint64_t line_since = 0;  // since when it is held only for others' turns
    std::uint64_t overtime = 0;    // of that, while another's turn lasted longer than turn_ms
    std::set<std::uint64_t> line = {};
    bool kept = false;      // whether it was kept to a share during the wait
    double weightiest = 0;  // the greatest weight of another, in units of its own
  };

  // It owed a turn, and has let another one go first.
  static bool HasPassed(const State& state, const Decision& decision, std::uint32_t index) {
    const GroupMemory& before = state.groups[index].memory;
    const GroupMemory& now = decision.memory[index];
    return before.turn_since_ns == 0 && now.turn_since_ns == 0 && now.last_turn_ns != before.last_turn_ns &&
           now.owed_ns < before.owed_ns;
  }

  // On no device does the guard open groups for more than its part of any second.
  Wrong Budget(const State& state, const Decision& decision, std::uint64_t now, std::uint64_t turn) {
    guarded_.resize(state.devices.size());
    guarded_since_.resize(state.devices.size());
    for (std::uint32_t device = 0; device < state.devices.size(); ++device) {
      std::set<std::uint32_t> groups;
      for (std::size_t i = 0; i < state.tenants.size(); ++i) {
        const bool guarded = state.tenants[i].device == device && decision.gates[i].why == Why::kGuard;
        if (guarded) groups.insert(state.tenants[i].group);
      }
      if (groups.size() > 1) return "two groups have a device's guard slot";
      auto& spans = guarded_[device];
      std::uint64_t& since = guarded_since_[device];
      if (since != 0) spans.push_back({since, now});
      since = groups.empty() ? 0 : now;
      const std::uint64_t from = now - kNsPerS;
      while (!spans.empty() && spans.front().second <= from)
        spans.pop_front();
      std::uint64_t sum = 0;
      for (const auto& [start, end] : spans)
        sum += end - std::max(start, from);
      if (sum > turn) return "the guard takes more than its part of a second";
    }
    return nullptr;
  }

  // Whether a group that existed before has come to another device, or left one.
  bool Membership(const State& state) {
    std::map<std::uint64_t, std::set<std::uint32_t>> devices;
    for (const Tenant& tenant : state.tenants)
      devices[state.groups[tenant.group].id].insert(tenant.device);
    const bool changed = std::any_of(devices.begin(), devices.end(), [&](const auto& entry) {
      const auto before = devices_.find(entry.first);
      return before != devices_.end() && before->second != entry.second;
    });
    devices_ = std::move(devices);
    return changed;
  }

  // The groups on devices that groups connect with those of `index`.
  static std::set<std::uint64_t> Connected(const State& state, std::uint32_t index) {
    std::set<std::uint32_t> groups{index};
    std::set<std::uint32_t> devices;
    for (bool grew = true; grew;) {
      const std::size_t before = groups.size() + devices.size();
      for (const Tenant& tenant : state.tenants) {
        if (groups.contains(tenant.group)) devices.insert(tenant.device);
        if (devices.contains(tenant.device)) groups.insert(tenant.group);
      }
      grew = groups.size() + devices.size() != before;
    }
    std::set<std::uint64_t> ids;
    for (const std::uint32_t group : groups)
      ids.insert(state.groups[group].id);
    return ids;
  }

  std::map<std::uint64_t, Wait> waits_;  // by group
  std::uint64_t before_ = 0;             // the time of the last decision
  bool overtime_ = false;                // somebody's turn lasts longer than turn_ms since then
  std::map<std::uint64_t, std::set<std::uint32_t>> devices_;
  std::vector<std::deque<std::pair<std::uint64_t, std::uint64_t>>> guarded_;
  std::vector<std::uint64_t> guarded_since_;
};

}  // namespace xschedd::policy::test
