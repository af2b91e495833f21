// `xschedctl explain`: why a client had to wait, and what would change it.
#include <limits>
#include <memory>

#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {

Command AddExplain(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command =
      app.add_subcommand("explain", "Say when a client was held, for whom, by which rule, and what to change");
  struct Options {
    std::string pid;
    std::uint32_t seconds = 10;
  };
  auto options = std::make_shared<Options>();
  command->add_option("pid,--pid", options->pid, "the client's process id")->required();
  command->add_option("--seconds", options->seconds, "look back so many seconds; 0: all that is remembered")
      ->capture_default_str();
  return {command, [=, &global]() -> Outcome<ExitCode> {
            const auto pid = ParseNumber(options->pid, "pid", std::numeric_limits<std::int32_t>::max());
            if (!pid) return UsageFailure(pid.error());
            Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
            if (!client) return tl::unexpected<Failure>(client.error());
            v1::ExplainRequest request;
            request.set_pid(*pid);
            request.set_seconds(options->seconds);
            const auto answer = client->Call(&v1::Admin::Stub::Explain, request);
            if (!answer) return tl::unexpected<Failure>(answer.error());
            Print(global.json ? Line(ToJson(*pid, *answer)) : RenderExplain(*pid, *answer, global.Style()));
            return ExitCode::kOk;
          }};
}

}  // namespace xschedd::ctl
