// The texts of reasons why a gate is open or shut.
#include "daemon/registry/reason.h"

#include <set>

#include "tests/catch.h"

using namespace xschedd;
using policy::Why;

TEST_CASE("every rule has its own name, and a sentence that names the client it waits for") {
  const struct {
    Why why;
    const char* name;
    const char* text;
  } cases[] = {
      {Why::kOpen, "open", "nobody more important is busy"},
      {Why::kGuard, "guard", "the starvation guard gives it a turn"},
      {Why::kHold, "hold", "on hold until xschedctl release"},
      {Why::kPriority, "priority", "pid 7 (priority -3) is busy"},
      {Why::kLinger, "linger", "pid 7 (priority -3) has just become idle"},
      {Why::kGang, "gang", "pid 7 (priority -3) is busy on another device of the group"},
      {Why::kTurn, "turn", "it is the turn of pid 7 (priority -3)"},
      {Why::kShare, "share", "ahead of its share; pid 7 (priority -3) is behind"},
      {Why::kDeadline, "deadline", "pid 7 (priority -3) runs first because of its deadline"},
      {Why::kFair, "fair", "pid 7 (priority -3) has had less of the device"},
      {static_cast<Why>(99), "unknown", "unknown"},  // from a history that was written over
  };
  std::set<std::string_view> names;
  for (const auto& [why, name, text] : cases) {
    CHECK(RuleName(why) == name);
    CHECK(Reason{why, 7, -3}.Text() == text);
    names.insert(RuleName(why));
  }
  CHECK(names.size() == std::size(cases));
}
