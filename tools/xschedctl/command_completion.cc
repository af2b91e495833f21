// `xschedctl completion`: what a shell needs to complete xschedctl's own command line. Needs no daemon.
#include <memory>

#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/completion.h"

namespace xschedd::ctl {

Command AddCompletion(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command = app.add_subcommand("completion", "Print a shell's completion of this program: bash or zsh");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash or zsh")->required();
  return {command, [=, &app, &global]() -> Outcome<ExitCode> {
            if (global.json) return UsageFailure({"completion has no JSON: it is a script", "leave out --json"});
            if (*shell == "bash") {
              Print(BashCompletion(app));
            } else if (*shell == "zsh") {
              Print(ZshCompletion(app));
            } else {
              return UsageFailure({"completion: there is none for " + *shell, "give bash or zsh"});
            }
            return ExitCode::kOk;
          }};
}

}  // namespace xschedd::ctl
