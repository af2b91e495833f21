#include <fmt/format.h>

#include <string_view>

#include "tools/xschedctl/completion.h"
#include "tools/xschedctl/completion_tree.h"

namespace xschedd::ctl {
namespace {

// The text for single quotes, with the characters `special` escaped.
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

std::string ZshOption(const CompletedOption& option, const std::string& name) {
  std::string line = fmt::format("    '{}{}{}[{}]", option.repeats ? "*" : "", name,
                                 option.takes_value && name.size() > 2 ? "=" : "", ZshText(option.text, "[]:\\"));
  if (option.takes_value) line += fmt::format(":value:{}", ZshAction(option.value));
  return line + "' \\\n";
}

std::string FunctionName(const CompletedCommand& command) {
  std::string name = "_xschedctl" + command.path;
  for (char& c : name)
    c = c == ' ' || c == '-' ? '_' : c;
  return name;
}

std::string ZshFunction(const CompletedCommand& command, const CompletedCommand& root) {
  const bool is_run = command.path == " run";  // the words after -- are another program's
  std::string body = fmt::format("{}() {{\n  local curcontext=$curcontext state line\n  _arguments -C{} \\\n",
                                 FunctionName(command), is_run ? " -S" : "");
  for (const CompletedOption& option : command.options) {
    for (const std::string& option_name : option.names)
      body += ZshOption(option, option_name);
  }
  // Global options may follow any command.
  for (const CompletedOption& option : root.options) {
    if (command.path.empty() || option.names.front() == "--help" || option.names.front() == "--version") continue;
    for (const std::string& option_name : option.names)
      body += ZshOption(option, option_name);
  }
  if (!command.commands.empty()) {
    body +=
        "    '1:command:->command' '*::argument:->argument'\n  case $state in\n    command)\n      local -a "
        "commands=(\n";
    for (const CompletedCommand& inner : command.commands)
      body += fmt::format("        '{}:{}'\n", Last(inner.path), ZshText(inner.text, ":\\"));
    body += "      )\n      _describe command commands\n      ;;\n    argument)\n      case $line[1] in\n";
    for (const CompletedCommand& inner : command.commands)
      body += fmt::format("        {}) {} ;;\n", Last(inner.path), FunctionName(inner));
    return body + "      esac\n      ;;\n  esac\n}\n";
  }
  if (is_run) return body + "    '*:::command:_normal'\n}\n";
  int place = 1;
  for (const CompletedOption& positional : command.positionals)
    body += fmt::format("    '{}:value:{}' \\\n", place++, ZshAction(positional.value));
  return body + "    && return 0\n}\n";
}

}  // namespace

std::string ZshCompletion(const CommandDescription& program) {
  const CompletedCommand root = CompletionTree(program);
  std::string script =
      "#compdef xschedctl\n# zsh completion for xschedctl; made by: xschedctl completion zsh\n\n"
      "_xschedctl_pids() {\n"
      "  local -a pids=(${(fu)\"$(xschedctl --no-header ps 2>/dev/null | awk '{ print $1 }')\"})\n"
      "  _describe process pids\n}\n";
  Each(root, [&](const CompletedCommand& command) { script += "\n" + ZshFunction(command, root); });
  // Works both sourced and loaded from fpath.
  return script +
         "\nif [[ $funcstack[1] == _xschedctl ]]; then\n  _xschedctl \"$@\"\nelse\n  compdef _xschedctl "
         "xschedctl\nfi\n";
}

}  // namespace xschedd::ctl
