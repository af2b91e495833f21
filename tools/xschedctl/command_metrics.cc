// `xschedctl metrics`: what a scrape of the daemon would get, but over admin.sock, so that it also works where no
// address is open.
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {
namespace {

// Line by line: line feeds belong to the format; other control characters could come from a client.
std::string HarmlessLines(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    shown += Harmless(std::string(line)) + "\n";
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return shown;
}

}  // namespace

Command AddMetrics(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("metrics", "Show the daemon's metrics, as Prometheus would scrape them");
  const auto prometheus = std::make_shared<bool>(false);
  command.AddFlag("--prometheus", *prometheus, "in Prometheus's older text format 0.0.4 instead of OpenMetrics");
  return {&command, [&global, prometheus]() -> Outcome<ExitCode> {
            Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
            if (!client) return tl::unexpected<Failure>(client.error());
            v1::GetMetricsRequest request;
            if (*prometheus) request.set_format(v1::METRICS_FORMAT_PROMETHEUS);
            const Outcome<v1::MetricsText> answer = client->Call(request);
            if (!answer) return tl::unexpected<Failure>(answer.error());
            const std::string text = HarmlessLines(answer->text());
            Print(global.json ? Document("metrics", {{"content_type", answer->content_type()}, {"text", text}}) : text);
            return ExitCode::kOk;
          }};
}

}  // namespace xschedd::ctl
