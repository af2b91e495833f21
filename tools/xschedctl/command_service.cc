// `xschedctl stats`, `reload`, `drain`, `version`: what concerns the daemon itself.
#include <fmt/format.h>

#include <memory>

#include "common/versions.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_config.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

template <typename Request, typename Answer, typename Show>
Outcome<ExitCode> Ask(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&, Answer*),
                      const Request& request, const GlobalOptions& global, const Show& show) {
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const Outcome<Answer> answer = client->Call(method, request);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Print(show(*answer));
  return ExitCode::kOk;
}

std::string ShowVersion(const v1::GetVersionResponse& answer) {
  return fmt::format("daemon    {} (pid {}, ABI {}, layout {:016x}, up {})\n", Harmless(answer.version()), answer.pid(),
                     answer.abi_version(), answer.layout_hash(), Duration(answer.uptime_ms() * 1'000'000));
}

std::string OwnVersion() {
  return fmt::format("xschedctl {} (ABI {}, layout {:016x})\n", XSCHEDD_VERSION, abi::Newest().version,
                     abi::Newest().layout_hash);
}

Json VersionJson(const v1::GetVersionResponse* daemon) {
  return {{"xschedctl", XSCHEDD_VERSION},
          {"abi_version", abi::Newest().version},
          {"layout_hash", fmt::format("{:016x}", abi::Newest().layout_hash)},
          {"daemon", daemon == nullptr ? Json() : ToJson(*daemon)}};
}

Outcome<ExitCode> Version(const GlobalOptions& global) {
  // Ours without a daemon, too: it is what a bug report needs.
  if (!global.json) Print(OwnVersion());
  Outcome<ExitCode> outcome = Ask<v1::GetVersionRequest, v1::GetVersionResponse>(
      &v1::Admin::Stub::GetVersion, v1::GetVersionRequest(), global, [&](const v1::GetVersionResponse& answer) {
        return global.json ? Document("version", VersionJson(&answer)) : ShowVersion(answer);
      });
  if (!outcome && global.json) Print(Document("version", VersionJson(nullptr)));
  return outcome;
}

std::string ShowDrain(std::uint32_t clients, bool dry_run) {
  const std::string connected = fmt::format("{} client{} still connected", clients, clients == 1 ? "" : "s");
  if (!dry_run) return "draining: all gates are open; " + connected + "\n";
  return "would open all gates and take no new clients; " + connected + "\n(dry run: nothing was changed)\n";
}

}  // namespace

Command AddStats(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("stats", "Show the daemon's counters");
  return {&command, [&global] {
            return Ask<v1::GetStatsRequest, v1::Stats>(
                &v1::Admin::Stub::GetStats, v1::GetStatsRequest(), global, [&](const v1::Stats& stats) {
                  return global.json ? Document("stats", ToJson(stats)) : RenderStats(stats);
                });
          }};
}

Command AddReload(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("reload", "Let the daemon read its configuration again");
  const auto dry_run = std::make_shared<bool>(false);
  command.AddFlag("--dry-run", *dry_run, "check the file, show what would change, change nothing");
  return {&command, [=, &global] {
            v1::ReloadRequest request;
            request.set_dry_run(*dry_run);
            return Ask<v1::ReloadRequest, v1::ReloadResponse>(
                &v1::Admin::Stub::Reload, request, global, [&](const v1::ReloadResponse& answer) {
                  return global.json ? Document("reload", ToJson(answer, *dry_run))
                                     : RenderReload(answer, *dry_run, global.Style());
                });
          }};
}

Command AddDrain(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("drain", "Open all gates and take no new clients");
  const auto dry_run = std::make_shared<bool>(false);
  command.AddFlag("--dry-run", *dry_run, "say whom it would concern, change nothing");
  return {&command, [=, &global] {
            v1::DrainRequest request;
            request.set_dry_run(*dry_run);
            return Ask<v1::DrainRequest, v1::DrainResponse>(
                &v1::Admin::Stub::Drain, request, global, [&](const v1::DrainResponse& answer) {
                  return global.json ? Document("drain", {{"dry_run", *dry_run}, {"clients", answer.clients()}})
                                     : ShowDrain(answer.clients(), *dry_run);
                });
          }};
}

Command AddVersion(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("version", "Show the versions of xschedctl and of the daemon");
  return {&command, [&global] { return Version(global); }};
}

}  // namespace xschedd::ctl
