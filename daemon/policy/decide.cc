#include "daemon/policy/decide.h"

#include <iterator>

#include "daemon/policy/fifo.h"

namespace xschedd::policy {

// Each is in its policy's file, whose header gives the whole promise.
StandingFunction DeadlineStanding, FairStanding, LaxityStanding;
UseFunction FairUse;

namespace {

struct PolicyRow {
  std::string_view name;
  std::string_view promise;
  std::string_view not_promised;
  std::optional<Rules> rules;  // none: the arbiter is not used
};

// In the order of Name. `./dev settings` writes the documents from it.
constexpr PolicyRow kPolicies[] = {
    {"priority", "equals run side by side; where their weights differ, they get GPU time by weight, as in share",
     "divide anything among equals of one weight", Rules{.share = Share::Use::kUnequalWeights}},
    {"share",
     "GPU time by weight, between owners first and then between the groups of each: within 2 points over any second, "
     "for clients that always have work; the others run beside the one that is held",
     "give back what was not used while idle; divide GPU memory or bandwidth; cut a kernel short",
     Rules{.share = Share::Use::kAlways}},
    {"deadline", "the earliest deadline runs first; late work keeps its place and is never dropped",
     "say whether all deadlines can be met; protect the others from a client that is always late, except by the guard",
     Rules{.standing = DeadlineStanding, .why = Why::kDeadline}},
    {"laxity", "work with a deadline waits for all others until it must start; then it runs before them",
     "help a client of which nothing is known yet: it is urgent at once",
     Rules{.standing = LaxityStanding, .why = Why::kDeadline}},
    {"fair",
     "the owner with the least GPU time runs first, and of each owner's groups the one with the least, in four levels: "
     "short jobs overtake long ones without announcing it",
     "protect long jobs from a stream of short ones, except by the guard",
     Rules{.standing = FairStanding, .use = FairUse, .why = Why::kFair}},
    {"fifo", "all clients are open and untracked, as without xschedd; only xschedctl hold still holds one",
     "anything else", std::nullopt},
};

const PolicyRow& RowOf(Name name) {
  return kPolicies[static_cast<std::size_t>(name)];
}

}  // namespace

std::vector<Name> Names() {
  std::vector<Name> names;
  for (std::size_t i = 0; i < std::size(kPolicies); ++i)
    names.push_back(static_cast<Name>(i));
  return names;
}

std::vector<std::string_view> NameTexts() {
  std::vector<std::string_view> texts;
  for (const PolicyRow& row : kPolicies)
    texts.push_back(row.name);
  return texts;
}

std::optional<Name> NameFrom(std::string_view text) {
  for (const Name name : Names())
    if (text == Text(name)) return name;
  return std::nullopt;
}

std::string_view Text(Name name) {
  return RowOf(name).name;
}

std::string_view PromiseOf(Name name) {
  return RowOf(name).promise;
}

std::string_view NotPromisedBy(Name name) {
  return RowOf(name).not_promised;
}

std::string NamesText() {
  std::string text;
  for (std::size_t i = 0; i < std::size(kPolicies); ++i) {
    if (i != 0) text += i + 1 == std::size(kPolicies) ? " or " : ", ";
    text += "\"" + std::string(kPolicies[i].name) + "\"";
  }
  return text;
}

const Decision& Decider::Decide(const State& state, std::uint64_t now_ns) {
  if (const std::optional<Rules>& rules = RowOf(state.settings.name).rules) {
    arbiter_.Decide(state, *rules, now_ns, decision_);
  } else {
    DecideFifo(state, decision_);
  }
  return decision_;
}

Decision Decide(const State& state, std::uint64_t now_ns) {
  Decider decider;
  return decider.Decide(state, now_ns);
}

}  // namespace xschedd::policy
