// `xschedctl doctor`: checks everything that scheduling a program needs, and says what is wrong and what to do.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "common/runtime_dir.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/doctor/checks.h"
#include "tools/xschedctl/doctor/gather.h"
#include "tools/xschedctl/doctor/report.h"
#include "tools/xschedctl/doctor/self_test.h"
#include "tools/xschedctl/pager.h"

namespace xschedd::ctl {

Command AddDoctor(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command =
      program.AddCommand("doctor", "Find what keeps programs from being scheduled, and say what to do");
  auto options = std::make_shared<DoctorOptions>();
  auto self_test = std::make_shared<bool>(false);
  command.AddOption("pid,--pid", options->pid, "also check whether this process is scheduled, and if not, why");
  command.AddOption("--root", options->root, "also check this root folder of a container",
                    {.value = OptionForm::Value::kExistingFolder});
  command.AddOption("--hip", options->hip, "also check this libamdhip64", {.value = OptionForm::Value::kExistingFile});
  command.AddOption("--shim", options->shim, "check this shim instead of the installed one");
  command.AddFlag(
      "--self-test", *self_test,
      "also let two programs of different priority compete under the daemon; needs no GPU, takes 4 s or more");
  return {&command, [=, &global]() -> Outcome<ExitCode> {
            options->runtime_dir = global.runtime_dir;
            if (!options->hip.empty()) options->hip = std::filesystem::absolute(options->hip).string();
            const Facts facts = Gather(*options);
            Report report = Examine(facts);
            if (*self_test) {
              const std::string runtime_dir = std::filesystem::absolute(RuntimeDir(global.runtime_dir)).string();
              for (Finding& finding : SelfTest(facts.shim.path, runtime_dir))
                report.entries.push_back({"self test", std::move(finding)});
            }
            Page(global.json ? Document("doctor", ToJson(report)) : Render(report, global.Style()), global);
            return report.HasError() ? ExitCode::kFound : ExitCode::kOk;
          }};
}

}  // namespace xschedd::ctl
