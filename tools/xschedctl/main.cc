// xschedctl: the administrator's and the user's hand on xschedd. See docs/xschedctl.md.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "common/runtime_dir.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {

TextStyle GlobalOptions::Style() const {
  return {TerminalWidth(), !no_header};
}

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void AddSelectorOptions(CLI::App& command, SelectorOptions& options) {
  command.add_option("--pid", options.pids, "process id; may be repeated")->allow_extra_args(false);
  command.add_option("--uid", options.uid, "user name or number");
  command.add_option("--group", options.group, "name of a group");
  command.add_option("--cgroup", options.cgroup, "this cgroup or one below it");
  command.add_option("--exe", options.exe, "executable: path, or file name without a slash");
  command.add_flag("--all", options.all, "every client");
}

namespace {

int ReportFailure(const Failure& failure) {
  fmt::print(stderr, "xschedctl: {}\n", Harmless(failure.error.Line()));
  return static_cast<int>(failure.code);
}

int Main(int argc, char** argv) {
  CLI::App app("Priorities for the processes that share a GPU.", "xschedctl");
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.footer(std::string(ExitCodeHelp()) + "\n");
  app.set_version_flag("--version", "xschedctl " XSCHEDD_VERSION);
  GlobalOptions global;
  app.add_option("--runtime-dir", global.runtime_dir,
                 "folder of the daemon's sockets (default: $" + std::string(kRuntimeDirVariable) + ", " +
                     kDefaultRuntimeDir + ")");
  app.add_flag("--json", global.json, "answer in JSON, one document a line");
  app.add_flag("--no-header", global.no_header, "leave out the tables' headers");

  // What stands after "--" is the command of `run`, whatever it looks like.
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto separator = std::find(words.begin(), words.end(), "--");
  const std::vector<std::string> rest(separator == words.end() ? separator : separator + 1, words.end());
  std::vector<std::string> own(words.begin(), separator);

  std::vector<Command> commands = AddPolicy(app, global);
  commands.push_back(AddRun(app, global, rest));
  for (const auto add : {AddPs, AddSet, AddHold, AddRelease, AddEvents, AddTrace, AddExplain, AddStats, AddReload,
                         AddDrain, AddDoctor, AddCompletion, AddVersion}) {
    commands.push_back(add(app, global));
  }

  std::reverse(own.begin(), own.end());  // CLI11 takes its vector from the end
  try {
    app.parse(own);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    const std::string name = chosen.empty() ? "" : " " + chosen.front()->get_name();
    const std::string hint = name == " run" ? "write the command after --, or see" : "see";
    return ReportFailure({ExitCode::kUsage, {error.what(), hint + " xschedctl" + name + " --help"}});
  }
  if (!rest.empty() && !app.got_subcommand("run")) {
    return ReportFailure({ExitCode::kUsage, {"only run takes words after --", "see xschedctl --help"}});
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const Outcome<ExitCode> outcome = command.action();
    return outcome ? static_cast<int>(*outcome) : ReportFailure(outcome.error());
  }
  return ReportFailure({ExitCode::kUsage, {"no command was given", "see xschedctl --help"}});
}

}  // namespace
}  // namespace xschedd::ctl

int main(int argc, char** argv) {
  try {
    return xschedd::ctl::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "xschedctl: unexpected error: {}\n", error.what());
    return static_cast<int>(xschedd::ctl::ExitCode::kRefused);
  }
}
