// `xschedctl completion`: prints the script with which a shell completes xschedctl's command line. Needs no daemon.
#include <memory>

#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/completion.h"

namespace xschedd::ctl {

Command AddCompletion(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command =
      program.AddCommand("completion", "Print the completion of xschedctl for a shell: bash or zsh");
  auto shell = std::make_shared<std::string>();
  command.AddOption("shell", *shell, "bash or zsh", {.is_required = true});
  return {&command, [=, &program, &global]() -> Outcome<ExitCode> {
            if (global.json)
              return UsageFailure({"completion takes no --json: it prints a script", "leave out --json"});
            if (*shell == "bash") {
              Print(BashCompletion(program.Describe()));
            } else if (*shell == "zsh") {
              Print(ZshCompletion(program.Describe()));
            } else {
              return UsageFailure({"there is no completion for " + *shell, "give bash or zsh"});
            }
            return ExitCode::kOk;
          }};
}

}  // namespace xschedd::ctl
