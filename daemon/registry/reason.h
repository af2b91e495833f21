// Why a gate is open or held: by which rule, and for whom. Small enough to be kept by the thousand. Thread rule:
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/policy/types.h"

namespace xschedd {

// `pid` and `priority` are as they were when the decision was made.
struct Reason {
  policy::Why why = policy::Why::kOpen;
  std::uint64_t pid = 0;     // the client that it waits for; 0: none in particular
  int priority = 0;          // of that client
  bool is_observed = false;  // decided but not enforced: it would be held
  std::string Text() const;
  bool operator==(const Reason&) const = default;
};

// One word for the rule, as events, traces and explain name it: "priority", "turn", "hold"...
std::string_view RuleName(policy::Why why);

}  // namespace xschedd
