// `xschedctl stats`, `reload`, `drain`, `version`: what concerns the daemon itself.
#include <fmt/format.h>

#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

template <typename Request, typename Answer, typename Show>
Outcome<ExitCode> Ask(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&, Answer*),
                      const GlobalOptions& global, const Show& show) {
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const Outcome<Answer> answer = client->Call(method, Request());
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Print(show(*answer));
  return ExitCode::kOk;
}

std::string ShowReload(const v1::ReloadResponse& answer, bool json) {
  if (json) {
    Json notes = Json::array();
    for (const std::string& note : answer.notes())
      notes.push_back(note);
    return Line({{"notes", notes}});
  }
  std::string text = "configuration read\n";
  for (const std::string& note : answer.notes())
    text += Harmless(note) + "\n";
  return text;
}

std::string ShowVersion(const v1::GetVersionResponse& answer, bool json) {
  if (json) return Line({{"xschedctl", XSCHEDD_VERSION}, {"daemon", ToJson(answer)}});
  return fmt::format("daemon    {} (pid {}, ABI {}, layout {:016x}, up {})\n", Harmless(answer.version()), answer.pid(),
                     answer.abi_version(), answer.layout_hash(), Duration(answer.uptime_ms() * 1'000'000));
}

}  // namespace

Command AddStats(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command = app.add_subcommand("stats", "Show the daemon's counters");
  return {command, [&global] {
            return Ask<v1::GetStatsRequest, v1::Stats>(&v1::Admin::Stub::GetStats, global, [&](const v1::Stats& stats) {
              return global.json ? Line(ToJson(stats)) : RenderStats(stats);
            });
          }};
}

Command AddReload(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command = app.add_subcommand("reload", "Let the daemon read its configuration again");
  return {command, [&global] {
            return Ask<v1::ReloadRequest, v1::ReloadResponse>(
                &v1::Admin::Stub::Reload, global,
                [&](const v1::ReloadResponse& answer) { return ShowReload(answer, global.json); });
          }};
}

Command AddDrain(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command = app.add_subcommand("drain", "Open all gates and take no new clients");
  return {command, [&global] {
            return Ask<v1::DrainRequest, v1::DrainResponse>(
                &v1::Admin::Stub::Drain, global, [&](const v1::DrainResponse& answer) {
                  return global.json ? Line({{"clients", answer.clients()}})
                                     : fmt::format("draining: all gates are open; {} clients still connected\n",
                                                   answer.clients());
                });
          }};
}

Command AddVersion(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command = app.add_subcommand("version", "Show the versions of xschedctl and of the daemon");
  return {command, [&global] {
            // Printed first, and without a daemon too: it is what a bug report needs.
            if (!global.json) Print(fmt::format("xschedctl {}\n", XSCHEDD_VERSION));
            return Ask<v1::GetVersionRequest, v1::GetVersionResponse>(
                &v1::Admin::Stub::GetVersion, global,
                [&](const v1::GetVersionResponse& answer) { return ShowVersion(answer, global.json); });
          }};
}

}  // namespace xschedd::ctl
