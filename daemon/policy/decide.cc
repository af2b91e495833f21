#include "daemon/policy/decide.h"

#include <iterator>

#include "daemon/policy/deadline.h"
#include "daemon/policy/fair.h"
#include "daemon/policy/fifo.h"
#include "daemon/policy/laxity.h"

namespace xschedd::policy {
namespace {

// What each policy is made of, indexed by Name; fifo arbitrates nothing.
constexpr Rules kRules[] = {
    {.share = Share::Use::kUnequalWeights},
    {.share = Share::Use::kAlways},
    {.standing = DeadlineStanding, .why = Why::kDeadline},
    {.standing = LaxityStanding, .why = Why::kDeadline},
    {.standing = FairStanding, .why = Why::kFair},
};
static_assert(std::size(kRules) == static_cast<std::size_t>(Name::kFifo));
static_assert(std::size(kNames) == static_cast<std::size_t>(Name::kFifo) + 1);

}  // namespace

std::optional<Name> NameFrom(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (text == kNames[i]) return static_cast<Name>(i);
  return std::nullopt;
}

std::string_view Text(Name name) {
  return kNames[static_cast<std::size_t>(name)];
}

std::string NamesText() {
  std::string text;
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (i != 0) text += i + 1 == std::size(kNames) ? " or " : ", ";
    text += "\"" + std::string(kNames[i]) + "\"";
  }
  return text;
}

const Decision& Decider::Decide(const State& state, std::uint64_t now_ns) {
  if (state.settings.name == Name::kFifo) {
    DecideFifo(state, decision_);
  } else {
    arbiter_.Decide(state, kRules[static_cast<std::size_t>(state.settings.name)], now_ns, decision_);
  }
  return decision_;
}

Decision Decide(const State& state, std::uint64_t now_ns) {
  Decider decider;
  return decider.Decide(state, now_ns);
}

}  // namespace xschedd::policy
