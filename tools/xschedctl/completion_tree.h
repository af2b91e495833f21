// The model from which both shells' completions are made: the commands and options of a command line that are not
// hidden, and the kind of each value. Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "common/command_syntax.h"

namespace xschedd::ctl {

enum class ValueKind { kAnything, kFile, kFolder, kUser, kPid, kWords };

struct Value {
  ValueKind kind = ValueKind::kAnything;
  std::string words = {};
};

struct CompletedOption {
  std::vector<std::string> names;  // "--pid", "-f"; empty for a positional
  std::string text;
  bool takes_value = false;
  bool repeats = false;
  Value value;
};

struct CompletedCommand {
  std::string path;  // " policy set"; empty for xschedctl itself
  std::string text;
  std::vector<CompletedOption> options;
  std::vector<CompletedOption> positionals;
  std::vector<CompletedCommand> commands;
};

CompletedCommand CompletionTree(const CommandDescription& command, const std::string& path = {});

// The last word of a path.
std::string Last(const std::string& path);

// The command itself, then those within it.
template <typename Visit>
void Each(const CompletedCommand& command, Visit visit) {
  visit(command);
  for (const CompletedCommand& inner : command.commands)
    Each(inner, visit);
}

}  // namespace xschedd::ctl
