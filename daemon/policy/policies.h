// Which policies there are: the rows of the registry in decide.cc, in its order. Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd::policy {

// A policy's place in the registry. Those that code speaks of have a constant; another needs none.
enum class Name { kPriority, kShare, kDeadline, kLaxity, kFair, kFifo };

std::vector<Name> Names();
std::vector<std::string_view> NameTexts();
std::optional<Name> NameFrom(std::string_view text);
std::string_view Text(Name name);
// What it promises to groups of one priority, and what it does not, each in a line: "the earliest deadline runs first".
std::string_view PromiseOf(Name name);
std::string_view NotPromisedBy(Name name);
// All names as a sentence needs them: `"priority", "share" or "fifo"`.
std::string NamesText();

}  // namespace xschedd::policy
