#include "tools/xschedctl/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

namespace xschedd::ctl {
namespace {

enum class ValueKind { kAnything, kFile, kFolder, kUser, kPid, kWords };

struct Value {
  ValueKind kind = ValueKind::kAnything;
  std::string words = {};
};

struct KnownValue {
  std::string_view name;  // of the option without dashes, or of the positional
  Value value;
};
const KnownValue kKnownValues[] = {
    {"pid", {ValueKind::kPid}},
    {"uid", {ValueKind::kUser}},
    {"exe", {ValueKind::kFile}},
    {"shim", {ValueKind::kFile}},
    {"file", {ValueKind::kFile}},
    {"hip", {ValueKind::kFile}},
    {"output", {ValueKind::kFile}},
    {"root", {ValueKind::kFolder}},
    {"runtime-dir", {ValueKind::kFolder}},
    {"reset", {ValueKind::kWords, "priority weight latency all"}},
    {"latency", {ValueKind::kWords, "strict auto"}},
    {"shell", {ValueKind::kWords, "bash zsh"}},
};

struct OptionOf {
  std::vector<std::string> names;  // "--pid", "-f"; of a positional none
  std::string text;
  bool takes_value = false;
  bool repeats = false;
  Value value;
};

struct CommandOf {
  std::string path;  // " policy set"; of xschedctl itself empty
  std::string text;
  std::vector<OptionOf> options;
  std::vector<OptionOf> positionals;
  std::vector<CommandOf> commands;
};

// Of "N|vendor" what is to be typed as it is.
std::string WordsOf(std::string type_name) {
  std::replace(type_name.begin(), type_name.end(), '|', ' ');
  std::istringstream parts(type_name);
  std::string words;
  for (std::string word; parts >> word;) {
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos) {
      words += (words.empty() ? "" : " ") + word;
    }
  }
  return words;
}

Value ValueOf(const CLI::Option& option, const std::string& name) {
  for (const KnownValue& known : kKnownValues) {
    if (known.name == name) return known.value;
  }
  if (const std::string words = WordsOf(option.get_type_name()); !words.empty()) return {ValueKind::kWords, words};
  if (option.get_type_name().find("FILE") != std::string::npos) return {ValueKind::kFile};
  if (option.get_type_name().find("DIR") != std::string::npos) return {ValueKind::kFolder};
  return {};
}

CommandOf Walk(const CLI::App& app, const std::string& path) {
  CommandOf command{path, app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options({})) {
    if (option->get_group().empty()) continue;  // hidden
    OptionOf found;
    for (const std::string& name : option->get_lnames())
      found.names.push_back("--" + name);
    for (const std::string& name : option->get_snames())
      found.names.push_back("-" + name);
    const bool is_positional = option->get_positional();
    const std::string name = !option->get_lnames().empty() ? option->get_lnames().front() : option->get_name(true);
    found.text = option->get_description();
    found.takes_value = option->get_items_expected_max() > 0;
    found.repeats = option->get_items_expected_max() > 1;
    found.value = ValueOf(*option, name);
    if (!found.names.empty()) command.options.push_back(found);
    if (is_positional) command.positionals.push_back(found);
  }
  for (const CLI::App* inner : app.get_subcommands({}))
    command.commands.push_back(Walk(*inner, path + " " + inner->get_name()));
  return command;
}

std::string Names(const CommandOf& command) {
  std::string words;
  for (const OptionOf& option : command.options) {
    for (const std::string& name : option.names)
      words += (words.empty() ? "" : " ") + name;
  }
  return words;
}

std::string Last(const std::string& path) {
  return path.substr(path.rfind(' ') + 1);
}

template <typename Visit>
void Each(const CommandOf& command, Visit visit) {
  visit(command);
  for (const CommandOf& inner : command.commands)
    Each(inner, visit);
}

// ---- bash ----------------------------------------------------------------------------------------------------------

std::string BashValue(const Value& value) {
  switch (value.kind) {
    case ValueKind::kFile:
      return "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")";
    case ValueKind::kFolder:
      return "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")";
    case ValueKind::kUser:
      return "mapfile -t COMPREPLY < <(compgen -u -- \"$cur\")";
    case ValueKind::kPid:
      return "mapfile -t COMPREPLY < <(compgen -W \"$(_xschedctl_pids)\" -- \"$cur\")";
    case ValueKind::kWords:
      return fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")", value.words);
    case ValueKind::kAnything:
      break;
  }
  return ":";
}

constexpr std::string_view kBashHead = R"(# bash completion for xschedctl; made by: xschedctl completion bash
# shellcheck shell=bash

_xschedctl_pids() { xschedctl --no-header ps 2>/dev/null | awk '{ print $1 }' | sort -u; }

_xschedctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} path='' options commands i
  COMPREPLY=()
  # Readline takes --option=value apart.
  [[ $cur == '=' ]] && cur=''
  [[ $prev == '=' ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      elif ((COMP_CWORD == i + 1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
      else
        compopt -o default 2>/dev/null
      fi
      return
    fi
    case "$path ${COMP_WORDS[i]}" in
)";

constexpr std::string_view kBashTail = R"(  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  elif [[ -n $commands ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur")
  fi
}
complete -F _xschedctl xschedctl
)";

// ---- zsh -----------------------------------------------------------------------------------------------------------

// Within single quotes, where the characters `special` mean something.
std::string ZshText(const std::string& text, std::string_view special) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else if (special.find(c) != std::string_view::npos) {
      quoted += std::string("\\") + c;
    } else {
      quoted += c;
    }
  }
  return quoted;
}

std::string ZshAction(const Value& value) {
  switch (value.kind) {
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kUser:
      return "_users";
    case ValueKind::kPid:
      return "_xschedctl_pids";
    case ValueKind::kWords:
      return fmt::format("({})", value.words);
    case ValueKind::kAnything:
      break;
  }
  return "";
}

std::string ZshOption(const OptionOf& option, const std::string& name) {
  std::string line = fmt::format("    '{}{}{}[{}]", option.repeats ? "*" : "", name,
                                 option.takes_value && name.size() > 2 ? "=" : "", ZshText(option.text, "[]:\\"));
  if (option.takes_value) line += fmt::format(":value:{}", ZshAction(option.value));
  return line + "' \\\n";
}

std::string ZshFunction(const CommandOf& command, const CommandOf& root) {
  std::string name = "_xschedctl" + command.path;
  for (char& c : name)
    c = c == ' ' || c == '-' ? '_' : c;
  const bool is_run = command.path == " run";  // what stands behind -- is another program's
  std::string body = fmt::format("{}() {{\n  local curcontext=$curcontext state line\n  _arguments -C{} \\\n", name,
                                 is_run ? " -S" : "");
  for (const OptionOf& option : command.options) {
    for (const std::string& option_name : option.names)
      body += ZshOption(option, option_name);
  }
  // What xschedctl itself takes may stand behind any command.
  for (const OptionOf& option : root.options) {
    if (command.path.empty() || option.names.front() == "--help" || option.names.front() == "--version") continue;
    for (const std::string& option_name : option.names)
      body += ZshOption(option, option_name);
  }
  if (!command.commands.empty()) {
    body +=
        "    '1:command:->command' '*::argument:->argument'\n  case $state in\n    command)\n      local -a "
        "commands=(\n";
    for (const CommandOf& inner : command.commands)
      body += fmt::format("        '{}:{}'\n", Last(inner.path), ZshText(inner.text, ":\\"));
    body += "      )\n      _describe command commands\n      ;;\n    argument)\n      case $line[1] in\n";
    for (const CommandOf& inner : command.commands) {
      std::string function = "_xschedctl" + inner.path;
      for (char& c : function)
        c = c == ' ' || c == '-' ? '_' : c;
      body += fmt::format("        {}) {} ;;\n", Last(inner.path), function);
    }
    return body + "      esac\n      ;;\n  esac\n}\n";
  }
  if (is_run) return body + "    '*:::command:_normal'\n}\n";
  int place = 1;
  for (const OptionOf& positional : command.positionals)
    body += fmt::format("    '{}:value:{}' \\\n", place++, ZshAction(positional.value));
  return body + "    && return 0\n}\n";
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  const CommandOf root = Walk(app, "");
  std::string script(kBashHead);
  std::string paths;
  std::string words;   // per path: options and commands
  std::string values;  // per option that takes a value
  std::string skips;   // the word behind it is its value
  Each(root, [&](const CommandOf& command) {
    if (!command.path.empty()) paths += fmt::format("{}'{}'", paths.empty() ? "" : " | ", command.path);
    std::string inner;
    for (const CommandOf& one : command.commands)
      inner += (inner.empty() ? "" : " ") + Last(one.path);
    const std::string own = Names(command);
    words += fmt::format("    '{}')\n      options='{}'\n      commands='{}'\n      ;;\n", command.path,
                         command.path.empty() ? own : own + " " + Names(root), inner);
    for (const OptionOf& option : command.options) {
      if (!option.takes_value) continue;
      for (const std::string& name : option.names) {
        // What xschedctl itself takes may stand behind any command.
        const std::string pattern =
            command.path.empty() ? fmt::format("*' {}'", name) : fmt::format("'{} {}'", command.path, name);
        skips += (skips.empty() ? "" : " | ") + pattern;
        values += fmt::format("    {})\n      {}\n      return\n      ;;\n", pattern, BashValue(option.value));
      }
    }
    for (const OptionOf& positional : command.positionals) {
      words.insert(words.size() - std::string_view("      ;;\n").size(),
                   fmt::format("      if [[ $cur != -* ]]; then\n        {}\n        return\n      fi\n",
                               BashValue(positional.value)));
    }
  });
  script += fmt::format("      {}) path+=\" ${{COMP_WORDS[i]}}\" ;;\n", paths);
  script += fmt::format("      {}) ((++i)) ;;\n    esac\n  done\n", skips);
  script += "  case \"$path $prev\" in\n" + values + "  esac\n";
  script += "  case $path in\n" + words + "  esac\n";
  return script + std::string(kBashTail);
}

std::string ZshCompletion(const CLI::App& app) {
  const CommandOf root = Walk(app, "");
  std::string script =
      "#compdef xschedctl\n# zsh completion for xschedctl; made by: xschedctl completion zsh\n\n"
      "_xschedctl_pids() {\n"
      "  local -a pids=(${(fu)\"$(xschedctl --no-header ps 2>/dev/null | awk '{ print $1 }')\"})\n"
      "  _describe process pids\n}\n";
  Each(root, [&](const CommandOf& command) { script += "\n" + ZshFunction(command, root); });
  // Sourced or found in fpath.
  return script +
         "\nif [[ $funcstack[1] == _xschedctl ]]; then\n  _xschedctl \"$@\"\nelse\n  compdef _xschedctl "
         "xschedctl\nfi\n";
}

}  // namespace xschedd::ctl
