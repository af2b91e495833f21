// `xschedctl cdi generate`: prints the CDI specification for container engines. Needs no daemon.
#include <filesystem>
#include <memory>

#include "common/runtime_dir.h"
#include "tools/xschedctl/cdi.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/installed_shim.h"

namespace xschedd::ctl {

Command AddCdi(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& cdi = program.AddCommand("cdi", "Connect containers to xschedd through CDI");
  cdi.RequireCommand();
  CommandSyntax& generate =
      cdi.AddCommand("generate", "Print the CDI specification of xschedd.io/client=any, for /etc/cdi/xschedd.json");
  const auto given = std::make_shared<std::string>();
  generate.AddOption("--shim", *given, "path of the shim in containers (default: $XSCHEDD_SHIM, or the installed one)");
  return {&generate, [=, &global]() -> Outcome<ExitCode> {
            if (global.json)
              return UsageFailure({"cdi generate takes no --json: what it prints is JSON", "leave out --json"});
            // A given path may be in another root, so it is not looked up.
            const Result<std::string> shim =
                given->empty() ? InstalledShim("") : Result<std::string>(std::filesystem::absolute(*given).string());
            if (!shim) return tl::unexpected<Failure>({ExitCode::kNoShim, shim.error()});
            const std::string folder = std::filesystem::absolute(RuntimeDir(global.runtime_dir)).string();
            const Result<std::string> specification = CdiSpecification(*shim, folder);
            if (!specification) return tl::unexpected<Failure>({ExitCode::kNoShim, specification.error()});
            Print(*specification);
            return ExitCode::kOk;
          }};
}

}  // namespace xschedd::ctl
