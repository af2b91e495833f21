// deadline as a table: when work is due, and which clients are open.
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

struct DeadlineRow {
  std::uint64_t group;
  int priority;
  std::uint64_t deadline_ms;        // from now, of its work; 0: none
  std::uint64_t deadline_after_ms;  // 0: none
  bool busy;
  char expected;
  Why why = Why::kOpen;
  std::uint64_t held_for = 0;
};

void CheckDeadlines(const char* name, const std::vector<DeadlineRow>& rows, std::uint64_t now = kNow) {
  INFO(name);
  World world(1);
  world.state.settings.name = Name::kDeadline;
  for (const DeadlineRow& row : rows) {
    Tenant& tenant = world.Add(row.group, row.priority, 0, row.busy);
    if (row.deadline_ms != 0) tenant.deadline_ns = kNow + row.deadline_ms * kNsPerMs;
    tenant.deadline_after_ns = row.deadline_after_ms * kNsPerMs;
  }
  const Decision decision = world.At(now);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO("row " << i);
    CHECK(std::string(1, Letter(decision.gates[i])) == std::string(1, rows[i].expected));
    CHECK(static_cast<int>(decision.gates[i].why) == static_cast<int>(rows[i].why));
    CHECK(decision.gates[i].held_for == rows[i].held_for);
  }
}

}  // namespace

TEST_CASE("deadline: inside a class the earliest runs first") {
  CheckDeadlines("earliest first", {{1, 0, 20, 33, true, 'H', Why::kDeadline, 200}, {2, 0, 10, 33, true, 'o'}});
  CheckDeadlines("priority comes before any deadline",
                 {{1, 0, 1, 33, true, 'H', Why::kPriority, 200}, {2, 1, 0, 0, true, 'o'}});
  CheckDeadlines("without one: after those with one, together", {{1, 0, 900, 1000, true, 'o'},
                                                                 {2, 0, 0, 0, true, 'H', Why::kDeadline, 100},
                                                                 {3, 0, 0, 0, true, 'H', Why::kDeadline, 100}});
  CheckDeadlines("the idle one's work would come before: the others run until it comes",
                 {{1, 0, 0, 33, false, 'o'}, {2, 0, 0, 0, true, 'o'}, {3, 0, 0, 0, true, 'o'}});
  CheckDeadlines("equal ones run together", {{1, 0, 10, 33, true, 'o'}, {2, 0, 10, 33, true, 'o'}});
  CheckDeadlines("an idle one is shut where it would be held",
                 {{1, 0, 10, 33, true, 'o'}, {2, 0, 0, 33, false, 'H', Why::kDeadline, 100}});
  CheckDeadlines("and open where it would overtake", {{1, 0, 50, 100, true, 'o'}, {2, 0, 0, 33, false, 'o'}});
  CheckDeadlines("no deadlines: untracked", {{1, 0, 0, 0, true, '-'}, {2, 0, 0, 0, true, '-'}});
  CheckDeadlines("alone: untracked", {{1, 0, 10, 33, true, '-'}});
}

TEST_CASE("deadline: late work keeps its place") {
  CheckDeadlines("late before early", {{1, 0, 10, 33, true, 'o'}, {2, 0, 200, 300, true, 'H', Why::kDeadline, 100}},
                 kNow + 100 * kNsPerMs);
  CheckDeadlines("the latest of two late ones waits",
                 {{1, 0, 10, 33, true, 'o'}, {2, 0, 20, 33, true, 'H', Why::kDeadline, 100}}, kNow + 100 * kNsPerMs);
}

TEST_CASE("deadline: a group has the earliest of its busy tenants', and is held as one") {
  World world(2);
  world.state.settings.name = Name::kDeadline;
  world.Add(1, 0, 0, true).deadline_ns = kNow + 50 * kNsPerMs;
  world.Add(1, 0, 1, true).deadline_ns = kNow + 10 * kNsPerMs;
  world.Add(2, 0, 0, true).deadline_ns = kNow + 20 * kNsPerMs;
  world.Add(2, 0, 1, true).deadline_ns = kNow + 30 * kNsPerMs;
  for (Tenant& tenant : world.state.tenants)
    tenant.deadline_after_ns = 60 * kNsPerMs;
  CHECK(Letters(world.At(kNow)) == "ooHH");
  // The idle tenant's deadline does not count.
  world.state.tenants[1].busy = false;
  const Decision decision = world.At(kNow + 1);
  CHECK(Letters(decision) == "HHoo");
  CHECK(decision.gates[0].why == Why::kDeadline);
}

TEST_CASE("deadline: a group that can be overtaken has a background window") {
  World world(1);
  world.state.settings.name = Name::kDeadline;
  world.Add(1, 0, 0, false).deadline_after_ns = 33 * kNsPerMs;
  Tenant& slow = world.Add(2, 0, 0, true);
  slow.deadline_after_ns = kNsPerS;
  slow.deadline_ns = kNow + kNsPerS;
  Decision decision = world.At(kNow);
  CHECK(Letters(decision) == "oo");
  CHECK(decision.gates[0].window_us == 20'000);
  CHECK(decision.gates[1].window_us == 500);
  // So near its deadline no other group can come before it.
  decision = world.At(kNow + 970 * kNsPerMs);
  CHECK(decision.gates[1].window_us == 20'000);
  // Work without a deadline can always be overtaken.
  world.state.tenants[1].deadline_ns = 0;
  world.state.tenants[1].deadline_after_ns = 0;
  CHECK(world.At(kNow + 980 * kNsPerMs).gates[1].window_us == 500);
}

TEST_CASE("deadline: the guard works inside a class, too") {
  World world(1);
  world.state.settings.name = Name::kDeadline;
  world.Add(1, 0, 0, true).deadline_ns = kNow + 1;
  world.Add(2, 0, 0, true);
  world.state.tenants[0].deadline_after_ns = 33 * kNsPerMs;
  CHECK(Letters(world.At(kNow)) == "oH");
  const Decision decision = world.At(kNow + 990 * kNsPerMs);
  CHECK(Letters(decision) == "oo");
  CHECK(decision.gates[1].why == Why::kGuard);
}
