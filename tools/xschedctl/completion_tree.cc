#include "tools/xschedctl/completion_tree.h"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace xschedd::ctl {
namespace {

struct KnownValue {
  std::string_view name;  // of the option without dashes, or of the positional
  Value value;
};
const KnownValue kKnownValues[] = {
    {"pid", {ValueKind::kPid}},
    {"uid", {ValueKind::kUser}},
    {"exe", {ValueKind::kFile}},
    {"shim", {ValueKind::kFile}},
    {"file", {ValueKind::kFile}},
    {"hip", {ValueKind::kFile}},
    {"output", {ValueKind::kFile}},
    {"root", {ValueKind::kFolder}},
    {"continue", {ValueKind::kFolder}},
    {"report", {ValueKind::kFolder}},
    {"runtime-dir", {ValueKind::kFolder}},
    {"reset", {ValueKind::kWords, "priority weight latency all"}},
    {"latency", {ValueKind::kWords, "strict auto"}},
    {"shell", {ValueKind::kWords, "bash zsh"}},
};

// The literal words of a placeholder: "auto" of "N|auto".
std::string WordsOf(std::string type_name) {
  std::replace(type_name.begin(), type_name.end(), '|', ' ');
  std::istringstream parts(type_name);
  std::string words;
  for (std::string word; parts >> word;) {
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos) {
      words += (words.empty() ? "" : " ") + word;
    }
  }
  return words;
}

Value ValueOf(const OptionDescription& option) {
  for (const KnownValue& known : kKnownValues) {
    if (known.name == option.name) return known.value;
  }
  if (const std::string words = WordsOf(option.placeholder); !words.empty()) return {ValueKind::kWords, words};
  if (option.placeholder.find("FILE") != std::string::npos) return {ValueKind::kFile};
  if (option.placeholder.find("DIR") != std::string::npos) return {ValueKind::kFolder};
  return {};
}

}  // namespace

CompletedCommand CompletionTree(const CommandDescription& command, const std::string& path) {
  CompletedCommand completed{path, command.help, {}, {}, {}};
  for (const OptionDescription& option : command.options) {
    if (option.is_hidden) continue;
    const CompletedOption found{option.names, option.help, option.takes_value, option.repeats, ValueOf(option)};
    if (!found.names.empty()) completed.options.push_back(found);
    if (option.is_positional) completed.positionals.push_back(found);
  }
  for (const CommandDescription& inner : command.commands)
    if (!inner.is_hidden) completed.commands.push_back(CompletionTree(inner, path + " " + inner.name));
  return completed;
}

std::string Last(const std::string& path) {
  return path.substr(path.rfind(' ') + 1);
}

}  // namespace xschedd::ctl
