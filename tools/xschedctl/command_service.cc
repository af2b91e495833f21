// The commands about the daemon itself: `xschedctl stats`, `reload`, `disable`, `enable`, `version`, and `drain`, the
// old name of `disable`.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "common/versions.h"
#include "tools/xschedctl/ask_daemon.h"
#include "tools/xschedctl/render_config.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

template <typename Request, typename Show>
Outcome<ExitCode> AskAndPrint(const Request& request, const GlobalOptions& global, const Show& show) {
  const auto answer = AskDaemon(global, request);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Print(show(*answer));
  return ExitCode::kOk;
}

std::string ShowVersion(const v1::GetVersionResponse& answer) {
  return fmt::format("daemon    {} (pid {}, ABI {}, layout {:016x}, up {})\n", OneLine(answer.version()), answer.pid(),
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
  // xschedctl's own version is printed even without a daemon: a bug report needs it.
  if (!global.json) Print(OwnVersion());
  Outcome<ExitCode> outcome = AskAndPrint(v1::GetVersionRequest(), global, [&](const v1::GetVersionResponse& answer) {
    return global.json ? Document("version", VersionJson(&answer)) : ShowVersion(answer);
  });
  if (!outcome && global.json) Print(Document("version", VersionJson(nullptr)));
  return outcome;
}

// A command whose request has nothing but `dry_run`; `show(answer, dry_run)` gives what it prints.
template <typename Request, typename Show>
Command WithDryRun(CommandSyntax& command, const char* help, const GlobalOptions& global, Show show) {
  const auto dry_run = std::make_shared<bool>(false);
  command.AddFlag("--dry-run", *dry_run, help);
  return {&command, [=, &global] {
            Request request;
            request.set_dry_run(*dry_run);
            return AskAndPrint(request, global, [&](const auto& answer) { return show(answer, *dry_run); });
          }};
}

constexpr const char* kCountOnly = "show how many clients it would affect; change nothing";
constexpr const char* kDryRun = "(dry run: nothing was changed)\n";

std::string Connected(std::uint64_t clients) {
  return Count(clients, "client") + " connected\n";
}

std::string ShowDisable(std::uint64_t clients, bool was_disabled, bool dry_run) {
  if (was_disabled) return "was disabled already; " + Connected(clients) + (dry_run ? kDryRun : "");
  if (dry_run) return "would open all gates and accept no new clients; " + Connected(clients) + kDryRun;
  return "disabled: all gates are open, and no new clients are accepted until xschedctl enable; " + Connected(clients);
}

std::string ShowEnable(std::uint64_t clients, bool was_enabled, bool dry_run) {
  if (was_enabled) return "was enabled already; " + Connected(clients) + (dry_run ? kDryRun : "");
  if (dry_run) return "would put the policy in force again and accept new clients; " + Connected(clients) + kDryRun;
  return "enabled: the policy is in force again; " + Connected(clients);
}

}  // namespace

Command AddStats(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("stats", "Show the daemon's counters");
  return {&command, [&global] {
            return AskAndPrint(v1::GetStatsRequest(), global, [&](const v1::Stats& stats) {
              return global.json ? Document("stats", ToJson(stats)) : RenderStats(stats);
            });
          }};
}

Command AddReload(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("reload", "Make the daemon read its configuration again");
  return WithDryRun<v1::ReloadRequest>(command, "check the files and show what would change; change nothing", global,
                                       [&global](const v1::ReloadResponse& answer, bool dry_run) {
                                         return global.json ? Document("reload", ToJson(answer, dry_run))
                                                            : RenderReload(answer, dry_run, global.Style());
                                       });
}

Command AddDisable(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command =
      program.AddCommand("disable", "Open all gates and accept no new clients until enable, even after a restart");
  return WithDryRun<v1::DisableRequest>(
      command, kCountOnly, global, [&global](const v1::DisableResponse& answer, bool dry_run) {
        return global.json
                   ? Document(
                         "disable",
                         {{"dry_run", dry_run}, {"clients", answer.clients()}, {"was_disabled", answer.was_disabled()}})
                   : ShowDisable(answer.clients(), answer.was_disabled(), dry_run);
      });
}

Command AddEnable(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command =
      program.AddCommand("enable", "End disable: the policy is in force again and new clients are accepted");
  return WithDryRun<v1::EnableRequest>(
      command, kCountOnly, global, [&global](const v1::EnableResponse& answer, bool dry_run) {
        return global.json
                   ? Document(
                         "enable",
                         {{"dry_run", dry_run}, {"clients", answer.clients()}, {"was_enabled", answer.was_enabled()}})
                   : ShowEnable(answer.clients(), answer.was_enabled(), dry_run);
      });
}

// `disable` was called this in 0.1.0.
Command AddDrain(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddHiddenCommand("drain", "The old name of disable");
  const Command drain = WithDryRun<v1::DrainRequest>(
      command, kCountOnly, global, [&global](const v1::DrainResponse& answer, bool dry_run) {
        return global.json ? Document("drain", {{"dry_run", dry_run}, {"clients", answer.clients()}})
                           : ShowDisable(answer.clients(), false, dry_run);
      });
  return {&command, [drain] {
            fmt::print(stderr, "xschedctl: drain is the old name of disable; xschedctl enable ends it\n");
            return drain.action();
          }};
}

Command AddVersion(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("version", "Show the versions of xschedctl and of the daemon");
  return {&command, [&global] { return Version(global); }};
}

}  // namespace xschedd::ctl
