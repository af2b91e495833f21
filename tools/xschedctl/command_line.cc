#include "tools/xschedctl/command_line.h"

#include <algorithm>

#include "common/runtime_dir.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {

TextStyle GlobalOptions::Style() const {
  return {TerminalWidth(), !no_header};
}

void AddSelectorOptions(CLI::App& command, SelectorOptions& options) {
  command.add_option("--pid", options.pids, "process id; may be repeated")->allow_extra_args(false);
  command.add_option("--uid", options.uid, "user name or number");
  command.add_option("--group", options.group, "name of a group");
  command.add_option("--cgroup", options.cgroup, "this cgroup or one below it");
  command.add_option("--exe", options.exe, "executable: path, or file name without a slash");
  command.add_flag("--all", options.all, "every client");
}

Outcome<std::function<Outcome<ExitCode>()>> CommandLine::Parse(const std::vector<std::string>& words) {
  app_.require_subcommand(0, 1);
  app_.fallthrough();
  app_.footer(std::string(ExitCodeHelp()) + "\n");
  app_.set_version_flag("--version", "xschedctl " XSCHEDD_VERSION);
  app_.add_option("--runtime-dir", global_.runtime_dir,
                  "folder of the daemon's sockets (default: $" + std::string(kRuntimeDirVariable) + ", " +
                      kDefaultRuntimeDir + ")");
  app_.add_flag("--json", global_.json, "answer in JSON, one document a line");
  app_.add_flag("--no-header", global_.no_header, "leave out the tables' headers");

  // What stands after "--" is the command of `run`, whatever it looks like.
  const auto separator = std::find(words.begin(), words.end(), "--");
  rest_.assign(separator == words.end() ? separator : separator + 1, words.end());
  std::vector<std::string> own(words.begin(), separator);

  std::vector<Command> commands = AddPolicy(app_, global_);
  commands.push_back(AddRun(app_, global_, rest_));
  for (const auto add : {AddPs, AddTop, AddSet, AddHold, AddRelease, AddEvents, AddTrace, AddExplain, AddStats,
                         AddMetrics, AddReload, AddDrain, AddDoctor, AddCompletion, AddVersion}) {
    commands.push_back(add(app_, global_));
  }

  std::reverse(own.begin(), own.end());  // CLI11 takes its vector from the end
  try {
    app_.parse(own);
  } catch (const CLI::Success& success) {
    // The texts of --help and --version; CLI11 prints them.
    return [this, print = std::current_exception()]() -> Outcome<ExitCode> {
      try {
        std::rethrow_exception(print);
      } catch (const CLI::Success& again) {
        app_.exit(again);
      }
      return ExitCode::kOk;
    };
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> chosen = app_.get_subcommands();
    const std::string name = chosen.empty() ? "" : " " + chosen.front()->get_name();
    const std::string hint = name == " run" ? "write the command after --, or see" : "see";
    return UsageFailure({error.what(), hint + " xschedctl" + name + " --help"});
  }
  if (!rest_.empty() && !app_.got_subcommand("run")) {
    return UsageFailure({"only run takes words after --", "see xschedctl --help"});
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    chosen_ = command.app->get_name();
    return command.action;
  }
  return UsageFailure({"no command was given", "see xschedctl --help"});
}

}  // namespace xschedd::ctl
