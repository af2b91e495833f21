// `xschedctl metrics`: what a scrape of the daemon would get, but over admin.sock, so that it also works where no
// address is open.
#include <memory>

#include "tools/xschedctl/ask_daemon.h"
#include "tools/xschedctl/lines.h"
#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {

Command AddMetrics(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("metrics", "Show the daemon's metrics, as Prometheus would scrape them");
  const auto prometheus = std::make_shared<bool>(false);
  command.AddFlag("--prometheus", *prometheus, "use Prometheus's older text format 0.0.4 instead of OpenMetrics");
  return {&command, [&global, prometheus]() -> Outcome<ExitCode> {
            v1::GetMetricsRequest request;
            if (*prometheus) request.set_format(v1::METRICS_FORMAT_PROMETHEUS);
            const Outcome<v1::MetricsText> answer = AskDaemon(global, request);
            if (!answer) return tl::unexpected<Failure>(answer.error());
            // Line feeds belong to the format; other control characters could come from a client.
            const std::string text = MapLines(answer->text(), [](const std::string& line) { return line; });
            Print(global.json ? Document("metrics", {{"content_type", answer->content_type()}, {"text", text}}) : text);
            return ExitCode::kOk;
          }};
}

}  // namespace xschedd::ctl
