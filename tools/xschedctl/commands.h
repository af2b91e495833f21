// The subcommands. Each adds itself to the command line and returns what to do when it was chosen. A command prints its
// answer to standard output and returns its exit code; what goes wrong comes back as a Failure, which main prints.
// Thread rule: main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

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
  CLI::App* app;
  std::function<Outcome<ExitCode>()> action;
};

// `rest`: what stands after "--" on the command line. Outlives the action.
Command AddRun(CLI::App& app, const GlobalOptions& global, const std::vector<std::string>& rest);
Command AddPs(CLI::App& app, const GlobalOptions& global);
Command AddTop(CLI::App& app, const GlobalOptions& global);
Command AddSet(CLI::App& app, const GlobalOptions& global);
Command AddHold(CLI::App& app, const GlobalOptions& global);
Command AddRelease(CLI::App& app, const GlobalOptions& global);
std::vector<Command> AddConfig(CLI::App& app, const GlobalOptions& global);
std::vector<Command> AddPolicy(CLI::App& app, const GlobalOptions& global);
Command AddEvents(CLI::App& app, const GlobalOptions& global);
Command AddTrace(CLI::App& app, const GlobalOptions& global);
Command AddExplain(CLI::App& app, const GlobalOptions& global);
Command AddStats(CLI::App& app, const GlobalOptions& global);
Command AddMetrics(CLI::App& app, const GlobalOptions& global);
Command AddReload(CLI::App& app, const GlobalOptions& global);
Command AddDrain(CLI::App& app, const GlobalOptions& global);
Command AddDoctor(CLI::App& app, const GlobalOptions& global);
Command AddCompletion(CLI::App& app, const GlobalOptions& global);
Command AddVersion(CLI::App& app, const GlobalOptions& global);

// Pids, also without --pid, --uid --group --cgroup --exe --all.
void AddSelectorOptions(CLI::App& command, SelectorOptions& options);

// A wrong command line, as a Failure.
inline tl::unexpected<Failure> UsageFailure(Error error) {
  return tl::unexpected<Failure>({ExitCode::kUsage, std::move(error)});
}

// Writes to standard output and flushes: answers must not stay in a buffer while `events --follow` waits.
void Print(const std::string& text);

}  // namespace xschedd::ctl
