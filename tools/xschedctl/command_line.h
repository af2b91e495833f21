// What a command line asks for. Reading one has no effect; what it asks for is done by the action that comes of it.
// Thread rule: main thread.
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

  // As given by options; what is set here before the action counts for it.
  GlobalOptions& Global() { return global_; }
  // Of the chosen subcommand; empty: none, as for --help.
  const std::string& Chosen() const { return chosen_; }

 private:
  CommandSyntax syntax_{"Priorities for the processes that share a GPU.", "xschedctl"};
  GlobalOptions global_;
  std::vector<std::string> rest_;  // the command of `run`, which its action starts
  std::string chosen_;
};

}  // namespace xschedd::ctl
