#include "tools/xschedctl/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "common/runtime_dir.h"
#include "tools/xschedctl/colour.h"
#include "tools/xschedctl/suggest.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {

TextStyle GlobalOptions::Style() const {
  return {TerminalWidth(), !no_header, HasColour(STDOUT_FILENO)};
}

void AddSelectorOptions(CLI::App& command, SelectorOptions& options) {
  command.add_option("pid,--pid", options.pids, "process id; may be repeated")->allow_extra_args(false);
  command.add_option("--uid", options.uid, "user name or number");
  command.add_option("--group", options.group, "name of a group");
  command.add_option("--cgroup", options.cgroup, "this cgroup or one below it");
  command.add_option("--exe", options.exe, "executable: path, or file name without a slash");
  command.add_flag("--all", options.all, "every client");
}

namespace {

// Whether the option takes the word behind it, where it has no value after "=".
bool TakesNext(const CLI::Option& option, std::string_view word) {
  return option.get_items_expected_min() > 0 && word.find('=') == std::string_view::npos;
}

const CLI::Option* FindOption(const CLI::App* command, const std::string& name) {
  for (; command != nullptr; command = command->get_parent()) {
    if (const CLI::Option* found = command->get_option_no_throw(name)) return found;
  }
  return nullptr;
}

std::string Advice(const std::string& nearest, const std::string& path) {
  return (nearest.empty() ? "" : "did you mean " + nearest + "? ") + "See xschedctl" + path + " --help";
}

// The first word that is no command, or no option, where one is wanted.
std::optional<Error> Mistyped(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  std::string path;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() > 2 && word.compare(0, 2, "--") == 0) {
      const std::string name = word.substr(0, word.find('='));
      const CLI::Option* const option = FindOption(at, name);
      if (option != nullptr) {
        i += TakesNext(*option, word) ? 1 : 0;
        continue;
      }
      std::vector<std::string> known;
      for (const CLI::App* command = at; command != nullptr; command = command->get_parent()) {
        for (const CLI::Option* one : command->get_options({})) {
          for (const std::string& long_name : one->get_lnames())
            known.push_back("--" + long_name);
        }
      }
      return Error{"there is no option \"" + name + "\"" + (path.empty() ? "" : " of" + path),
                   Advice(Nearest(name, known), path)};
    }
    if (word[0] == '-' || at->get_subcommands({}).empty()) continue;
    std::vector<std::string> known;
    const CLI::App* next = nullptr;
    for (const CLI::App* command : at->get_subcommands({})) {
      known.push_back(command->get_name());
      if (command->get_name() == word) next = command;
    }
    if (next == nullptr) {
      return Error{"there is no command \"" + (path.empty() ? "" : path.substr(1) + " ") + word + "\"",
                   Advice(Nearest(word, known), path)};
    }
    at = next;
    path += " " + word;
  }
  return std::nullopt;
}

}  // namespace

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
  app_.add_flag("--no-pager", global_.no_pager, "do not show long answers by a pager");

  // What stands after "--" is the command of `run`, whatever it looks like.
  const auto separator = std::find(words.begin(), words.end(), "--");
  rest_.assign(separator == words.end() ? separator : separator + 1, words.end());
  std::vector<std::string> own(words.begin(), separator);

  std::vector<Command> commands = AddPolicy(app_, global_);
  for (Command& command : AddConfig(app_, global_))
    commands.push_back(std::move(command));
  commands.push_back(AddRun(app_, global_, rest_));
  for (const auto add : {AddPs, AddTop, AddSet, AddHold, AddRelease, AddEvents, AddTrace, AddExplain, AddStats,
                         AddMetrics, AddReload, AddDrain, AddDoctor, AddCompletion, AddVersion}) {
    commands.push_back(add(app_, global_));
  }

  const std::vector<std::string> typed = own;
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
    if (std::optional<Error> mistyped = Mistyped(app_, typed)) return UsageFailure(std::move(*mistyped));
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
