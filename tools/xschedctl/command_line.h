// Parses a command line. Parsing has no effect; the action that it returns does the work. Thread rule: main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/xschedctl/commands.h"

namespace xschedd::ctl {

class CommandLine {
 public:
  // `words`: without the program's name. The action is valid for as long as this object.
  Outcome<std::function<Outcome<ExitCode>()>> Parse(const std::vector<std::string>& words);

  // The global options; what is changed here before the action runs applies to it.
  GlobalOptions& Global() { return global_; }
  // Name of the chosen subcommand; empty: none, as for --help.
  const std::string& Chosen() const { return chosen_; }

 private:
  CommandSyntax syntax_{"Priorities for the processes that share a GPU.", "xschedctl"};
  GlobalOptions global_;
  std::vector<std::string> rest_;  // the command of `run`, which its action starts
  std::string chosen_;
};

}  // namespace xschedd::ctl
