// The policies, in the order of the registry in decide.cc. Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd::policy {

// A policy's index in the registry. Only those that code names need a constant.
enum class Name { kPriority, kShare, kDeadline, kLaxity, kFair, kFifo };

std::vector<Name> Names();
std::vector<std::string_view> NameTexts();
std::optional<Name> NameFrom(std::string_view text);
std::string_view Text(Name name);
// What it promises to groups of one priority, and what it does not, each in a line: "the earliest deadline runs first".
std::string_view PromiseOf(Name name);
std::string_view NotPromisedBy(Name name);
// All names, for a sentence: `"priority", "share" or "fifo"`.
std::string NamesText();

}  // namespace xschedd::policy
