#include "tools/xschedctl/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "common/runtime_dir.h"
#include "tools/xschedctl/colour.h"
#include "tools/xschedctl/suggest.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {

TextStyle GlobalOptions::Style() const {
  return {TerminalWidth(), !no_header, HasColour(STDOUT_FILENO)};
}

void AddSelectorOptions(CommandSyntax& command, SelectorOptions& options, const std::string& all) {
  command.AddOption("pid,--pid", options.pids, "process id; may be repeated");
  command.AddOption("--uid", options.uid, "user name or number");
  command.AddOption("--group", options.group, "name of a group");
  command.AddOption("--cgroup", options.cgroup, "this cgroup or one below it");
  command.AddOption("--exe", options.exe, "executable: path, or file name without a slash");
  command.AddFlag("--all", options.all, all);
}

namespace {

// The commands around a word, from the program down.
using Path = std::vector<const CommandDescription*>;

// Whether the option takes the next word as its value, having none after "=".
bool TakesNext(const OptionDescription& option, std::string_view word) {
  return option.needs_value && word.find('=') == std::string_view::npos;
}

const OptionDescription* FindOption(const Path& path, const std::string& name) {
  for (auto command = path.rbegin(); command != path.rend(); ++command) {
    for (const OptionDescription& option : (*command)->options) {
      if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) return &option;
    }
  }
  return nullptr;
}

// The innermost command's first.
std::vector<std::string> LongNames(const Path& path) {
  std::vector<std::string> known;
  for (auto command = path.rbegin(); command != path.rend(); ++command) {
    for (const OptionDescription& option : (*command)->options) {
      std::copy_if(option.names.begin(), option.names.end(), std::back_inserter(known),
                   [](const std::string& name) { return name.starts_with("--"); });
    }
  }
  return known;
}

std::string Advice(const std::string& nearest, const std::string& path) {
  return (nearest.empty() ? "" : "did you mean " + nearest + "? ") + "See xschedctl" + path + " --help";
}

// An error about the first word that is neither a known command nor a known option; none: all are known.
std::optional<Error> Mistyped(const CommandDescription& program, const std::vector<std::string>& words) {
  Path path{&program};
  std::string typed;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() > 2 && word.starts_with("--")) {
      const std::string name = word.substr(0, word.find('='));
      if (const OptionDescription* const option = FindOption(path, name)) {
        i += TakesNext(*option, word) ? 1 : 0;
        continue;
      }
      return Error{"there is no option \"" + name + "\"" + (typed.empty() ? "" : " of" + typed),
                   Advice(Nearest(name, LongNames(path)), typed)};
    }
    const std::vector<CommandDescription>& commands = path.back()->commands;
    if (word[0] == '-' || commands.empty()) continue;
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const CommandDescription& command) { return command.name == word; });
    if (found == commands.end()) {
      std::vector<std::string> known;
      for (const CommandDescription& command : commands)
        if (!command.is_hidden) known.push_back(command.name);
      return Error{"there is no command \"" + (typed.empty() ? "" : typed.substr(1) + " ") + word + "\"",
                   Advice(Nearest(word, known), typed)};
    }
    path.push_back(&*found);
    typed += " " + word;
  }
  return std::nullopt;
}

}  // namespace

Outcome<std::function<Outcome<ExitCode>()>> CommandLine::Parse(const std::vector<std::string>& words) {
  syntax_.AllowCommand();
  syntax_.SetFooter(std::string(ExitCodeHelp()) + "\n");
  syntax_.SetVersion("xschedctl " XSCHEDD_VERSION);
  syntax_.AddOption("--runtime-dir", global_.runtime_dir,
                    "folder of the daemon's sockets (default: $" + std::string(kRuntimeDirVariable) + ", " +
                        kDefaultRuntimeDir + ")");
  syntax_.AddFlag("--json", global_.json, "print JSON, one document per line");
  syntax_.AddFlag("--no-header", global_.no_header, "print tables without headers");
  syntax_.AddFlag("--no-pager", global_.no_pager, "do not show long output in a pager");

  // What stands after "--" is the command of `run`, whatever it looks like.
  const auto separator = std::find(words.begin(), words.end(), "--");
  rest_.assign(separator == words.end() ? separator : separator + 1, words.end());
  std::vector<std::string> own(words.begin(), separator);

  std::vector<Command> commands = AddPolicy(syntax_, global_);
  for (Command& command : AddConfig(syntax_, global_))
    commands.push_back(std::move(command));
  for (Command& command : AddClaim(syntax_, global_))
    commands.push_back(std::move(command));
  for (Command& command : AddSlurm(syntax_, global_))
    commands.push_back(std::move(command));
  commands.push_back(AddRun(syntax_, global_, rest_));
  for (const auto add : {AddPs,      AddTop,        AddSet,           AddHold,   AddRelease,    AddEvents, AddTrace,
                         AddExplain, AddStats,      AddMetrics,       AddReload, AddDisable,    AddEnable, AddDrain,
                         AddDoctor,  AddAcceptance, AddSupportBundle, AddCdi,    AddCompletion, AddVersion}) {
    commands.push_back(add(syntax_, global_));
  }

  const CommandReading reading = syntax_.Read(own);
  const std::string given = syntax_.GivenCommand();
  switch (reading.kind) {
    case CommandReading::Kind::kRead:
      break;
    case CommandReading::Kind::kShown:
      return [text = reading.text]() -> Outcome<ExitCode> {
        Print(text);
        return ExitCode::kOk;
      };
    case CommandReading::Kind::kWrong: {
      if (std::optional<Error> mistyped = Mistyped(syntax_.Describe(), own)) return UsageFailure(std::move(*mistyped));
      const std::string hint = given == "run" ? "write the command after --, or see" : "see";
      return UsageFailure({reading.text, hint + " xschedctl" + (given.empty() ? "" : " " + given) + " --help"});
    }
  }
  if (!rest_.empty() && given != "run") {
    return UsageFailure({"only run takes words after --", "see xschedctl --help"});
  }
  for (const Command& command : commands) {
    if (!command.syntax->WasGiven()) continue;
    chosen_ = command.syntax->Name();
    return command.action;
  }
  return UsageFailure({"no command was given", "see xschedctl --help"});
}

}  // namespace xschedd::ctl
