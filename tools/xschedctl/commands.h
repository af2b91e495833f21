// The subcommands. Each adds itself to the command line and returns the action for when it is chosen. A command prints
// its answer to standard output and returns its exit code; an error is returned as a Failure, which main prints. Thread
// rule: main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/command_syntax.h"
#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/render_text.h"
#include "tools/xschedctl/selector.h"

namespace xschedd::ctl {

struct GlobalOptions {
  std::string runtime_dir;
  bool json = false;
  bool no_header = false;
  bool no_pager = false;

  TextStyle Style() const;
};

struct Command {
  const CommandSyntax* syntax;
  std::function<Outcome<ExitCode>()> action;
};

// `rest`: the words after "--" on the command line. Outlives the action.
Command AddRun(CommandSyntax& program, const GlobalOptions& global, const std::vector<std::string>& rest);
Command AddPs(CommandSyntax& program, const GlobalOptions& global);
Command AddTop(CommandSyntax& program, const GlobalOptions& global);
Command AddSet(CommandSyntax& program, const GlobalOptions& global);
Command AddHold(CommandSyntax& program, const GlobalOptions& global);
Command AddRelease(CommandSyntax& program, const GlobalOptions& global);
std::vector<Command> AddConfig(CommandSyntax& program, const GlobalOptions& global);
std::vector<Command> AddClaim(CommandSyntax& program, const GlobalOptions& global);
std::vector<Command> AddSlurm(CommandSyntax& program, const GlobalOptions& global);
std::vector<Command> AddPolicy(CommandSyntax& program, const GlobalOptions& global);
Command AddEvents(CommandSyntax& program, const GlobalOptions& global);
Command AddTrace(CommandSyntax& program, const GlobalOptions& global);
Command AddExplain(CommandSyntax& program, const GlobalOptions& global);
Command AddStats(CommandSyntax& program, const GlobalOptions& global);
Command AddMetrics(CommandSyntax& program, const GlobalOptions& global);
Command AddReload(CommandSyntax& program, const GlobalOptions& global);
Command AddDisable(CommandSyntax& program, const GlobalOptions& global);
Command AddEnable(CommandSyntax& program, const GlobalOptions& global);
Command AddDrain(CommandSyntax& program, const GlobalOptions& global);
Command AddDoctor(CommandSyntax& program, const GlobalOptions& global);
Command AddAcceptance(CommandSyntax& program, const GlobalOptions& global);
Command AddSupportBundle(CommandSyntax& program, const GlobalOptions& global);
Command AddCdi(CommandSyntax& program, const GlobalOptions& global);
Command AddCompletion(CommandSyntax& program, const GlobalOptions& global);
Command AddVersion(CommandSyntax& program, const GlobalOptions& global);

// Adds the selectors: pids (--pid may be left out), --uid, --group, --cgroup, --exe, --all. `all`: the help of --all.
void AddSelectorOptions(CommandSyntax& command, SelectorOptions& options, const std::string& all = "every client");

// A wrong command line, as a Failure.
inline tl::unexpected<Failure> UsageFailure(Error error) {
  return tl::unexpected<Failure>({ExitCode::kUsage, std::move(error)});
}

// Writes to standard output and flushes: answers must not stay in a buffer while `events --follow` waits.
void Print(const std::string& text);

}  // namespace xschedd::ctl
