#include <fmt/format.h>

#include <string_view>

#include "tools/xschedctl/completion.h"
#include "tools/xschedctl/completion_tree.h"

namespace xschedd::ctl {
namespace {

std::string Names(const CompletedCommand& command) {
  std::string words;
  for (const CompletedOption& option : command.options) {
    for (const std::string& name : option.names)
      words += (words.empty() ? "" : " ") + name;
  }
  return words;
}

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
  # Readline splits --option=value.
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

}  // namespace

std::string BashCompletion(const CommandDescription& program) {
  const CompletedCommand root = CompletionTree(program);
  std::string script(kBashHead);
  std::string paths;
  std::string words;   // per path: options and commands
  std::string values;  // per option that takes a value
  std::string skips;   // options whose next word is their value
  Each(root, [&](const CompletedCommand& command) {
    if (!command.path.empty()) paths += fmt::format("{}'{}'", paths.empty() ? "" : " | ", command.path);
    std::string inner;
    for (const CompletedCommand& one : command.commands)
      inner += (inner.empty() ? "" : " ") + Last(one.path);
    const std::string own = Names(command);
    words += fmt::format("    '{}')\n      options='{}'\n      commands='{}'\n      ;;\n", command.path,
                         command.path.empty() ? own : own + " " + Names(root), inner);
    for (const CompletedOption& option : command.options) {
      if (!option.takes_value) continue;
      for (const std::string& name : option.names) {
        // Global options may follow any command.
        const std::string pattern =
            command.path.empty() ? fmt::format("*' {}'", name) : fmt::format("'{} {}'", command.path, name);
        skips += (skips.empty() ? "" : " | ") + pattern;
        values += fmt::format("    {})\n      {}\n      return\n      ;;\n", pattern, BashValue(option.value));
      }
    }
    for (const CompletedOption& positional : command.positionals) {
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

}  // namespace xschedd::ctl
