// What both shells' completions are made from: the commands and options of a command line, without what is hidden, and
// what each value may be. Thread rule: pure functions.
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
  std::vector<std::string> names;  // "--pid", "-f"; of a positional none
  std::string text;
  bool takes_value = false;
  bool repeats = false;
  Value value;
};

struct CompletedCommand {
  std::string path;  // " policy set"; of xschedctl itself empty
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
