// `xschedctl doctor`: looks at everything that scheduling a program needs, and says what is wrong and what to do.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/doctor/checks.h"
#include "tools/xschedctl/doctor/gather.h"
#include "tools/xschedctl/doctor/report.h"

namespace xschedd::ctl {

Command AddDoctor(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command =
      app.add_subcommand("doctor", "Look for what keeps programs from being scheduled, and say what to do");
  auto options = std::make_shared<DoctorOptions>();
  command->add_option("--pid", options->pid, "look at this process, too: is it scheduled, and if not, why");
  command->add_option("--root", options->root, "look at this folder tree of a container, too")
      ->check(CLI::ExistingDirectory);
  command->add_option("--hip", options->hip, "look at this libamdhip64, too")->check(CLI::ExistingFile);
  command->add_option("--shim", options->shim, "look at this shim in place of the installed one");
  return {command, [=, &global]() -> Outcome<ExitCode> {
            options->runtime_dir = global.runtime_dir;
            if (!options->hip.empty()) options->hip = std::filesystem::absolute(options->hip).string();
            const Report report = Examine(Gather(*options));
            Print(global.json ? Line(ToJson(report)) : Render(report));
            return report.HasError() ? ExitCode::kFound : ExitCode::kOk;
          }};
}

}  // namespace xschedd::ctl
