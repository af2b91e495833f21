// `xschedctl claim put|list|report|rm`: claims of jobs and containers, for a fleet's engine and its plugins.
#include <memory>
#include <vector>

#include "common/memory_limit.h"
#include "common/priority.h"
#include "common/runtime_dir.h"
#include "daemon/config/duration.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/pager.h"
#include "tools/xschedctl/render_claims.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

struct ClaimOptions {
  std::string name;
  std::string cgroup;
  std::string priority;
  std::string ceiling;
  std::string weight;
  std::string weight_ceiling;
  std::string latency;
  std::string memory;
  std::string group;
  std::vector<std::string> labels;
  std::string ttl;
  bool has_socket = false;
  bool dry_run = false;
};

// The folder in which the daemon makes a folder for each claim's socket.
std::string ClaimsFolder(const GlobalOptions& global) {
  return RuntimeDir(global.runtime_dir) + "/" + kClaimsFolderName;
}

Result<void> ParseLabels(const std::vector<std::string>& labels, v1::Claim& claim) {
  for (const std::string& label : labels) {
    const std::size_t end = label.find('=');
    if (end == std::string::npos || end == 0) {
      return Fail("claim put: \"" + label + "\" is not a label", "write it as --label NAME=VALUE");
    }
    if (!claim.mutable_labels()->insert({label.substr(0, end), label.substr(end + 1)}).second) {
      return Fail("claim put: label \"" + label.substr(0, end) + "\" is given twice", "give it once");
    }
  }
  return {};
}

Result<v1::PutClaimRequest> ParsePut(const ClaimOptions& options) {
  v1::PutClaimRequest request;
  request.set_dry_run(options.dry_run);
  v1::Claim& claim = *request.mutable_claim();
  claim.set_name(options.name);
  claim.set_cgroup(options.cgroup);
  claim.set_has_socket(options.has_socket);
  if (options.cgroup.empty() && !options.has_socket) {
    return Fail("claim put: neither a cgroup nor a socket was given", "give --cgroup PATH or --socket");
  }
  claim.set_group(options.group);
  if (!options.priority.empty()) {
    const Result<int> priority = ParsePriority(options.priority);
    if (!priority) return tl::unexpected<Error>(priority.error());
    claim.set_priority(*priority);
  }
  if (!options.ceiling.empty()) {
    const Result<int> ceiling = ParsePriority(options.ceiling);
    if (!ceiling) return tl::unexpected<Error>(ceiling.error());
    claim.set_ceiling(*ceiling);
  }
  if (!options.weight.empty()) {
    const Result<std::uint32_t> weight = ParseWeight(options.weight);
    if (!weight) return tl::unexpected<Error>(weight.error());
    claim.set_weight(*weight);
  }
  if (!options.weight_ceiling.empty()) {
    const Result<std::uint32_t> ceiling = ParseWeight(options.weight_ceiling);
    if (!ceiling) return tl::unexpected<Error>(ceiling.error());
    claim.set_weight_ceiling(*ceiling);
  }
  if (!options.latency.empty()) {
    const Result<std::string> latency = ParseLatency(options.latency);
    if (!latency) return tl::unexpected<Error>(latency.error());
    claim.set_latency(*latency);
  }
  if (!options.memory.empty()) {
    const Result<std::uint64_t> limit = ParseMemoryLimit(options.memory);
    if (!limit) return tl::unexpected<Error>(limit.error());
    claim.set_memory_limit(*limit);
  }
  if (!options.ttl.empty()) {
    const Result<std::uint32_t> ttl = ParseSeconds(options.ttl);
    if (!ttl) return tl::unexpected<Error>(ttl.error());
    if (*ttl == 0)
      return Fail("claim put: --ttl 0 would end it at once", "leave out --ttl: the claim then ends with its cgroup");
    claim.set_ttl_ms(std::uint64_t{*ttl} * 1'000);
  }
  if (const Result<void> labels = ParseLabels(options.labels, claim); !labels) {
    return tl::unexpected<Error>(labels.error());
  }
  return request;
}

// Makes the call and prints the answer: as JSON of this kind, or as text.
template <typename Request, typename ShowText, typename ShowJson>
Outcome<ExitCode> AskAndShow(const Request& request, const GlobalOptions& global, const std::string& kind,
                             const ShowText& text, const ShowJson& json) {
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const auto answer = client->Call(request);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  Page(global.json ? Document(kind, json(*answer)) : text(*answer), global);
  return ExitCode::kOk;
}

Command AddPut(CommandSyntax& claim, const GlobalOptions& global) {
  CommandSyntax& command = claim.AddCommand("put", "Make or renew a claim for a cgroup or a container; needs root");
  auto options = std::make_shared<ClaimOptions>();
  command.AddOption("name", options->name, "the claim's name: letters, digits, \".\", \"_\", \"-\"",
                    {.is_required = true});
  command.AddOption(
      "--cgroup", options->cgroup,
      "applies to this cgroup and those below it: the path in /proc/PID/cgroup (\"name=systemd\", or else "
      "\"0::\")");
  command.AddFlag("--socket", options->has_socket,
                  "applies to clients that connect by the claim's own socket, in a folder to mount into a container");
  command.AddOption("--priority", options->priority, "-100 to 100; larger is more important");
  command.AddOption("--ceiling", options->ceiling,
                    "the highest priority that rules, users and hints can give; --priority overrides them");
  command.AddOption("--weight", options->weight, "1 to 10000; share among equals");
  command.AddOption("--weight-ceiling", options->weight_ceiling, "the same for the weight");
  command.AddOption("--latency", options->latency,
                    "\"strict\": others are held whenever it is busy; \"auto\": only where that helps it");
  command.AddOption("--memory", options->memory,
                    "the most device memory that its clients may have together on each device, such as 24G; "
                    "cooperative",
                    {.placeholder = "SIZE"});
  command.AddOption("--group", options->group, "all clients of claims that give this group are opened and held as one");
  command.AddOption("--label", options->labels, "NAME=VALUE, such as pod=web-1 or job=17; may be repeated");
  command.AddOption("--ttl", options->ttl,
                    "the claim ends if it is not put again within this time; if not given: with its cgroup, or by rm",
                    {.placeholder = "T"});
  command.AddFlag("--dry-run", options->dry_run, "check the claim; change nothing");
  return {&command, [=, &global]() -> Outcome<ExitCode> {
            const Result<v1::PutClaimRequest> request = ParsePut(*options);
            if (!request) return UsageFailure(request.error());
            return AskAndShow(
                *request, global, "claim-put",
                [&](const auto& answer) { return RenderPut(answer, options->dry_run, ClaimsFolder(global)); },
                [&](const auto& answer) { return ToJson(answer, options->dry_run, ClaimsFolder(global)); });
          }};
}

Command AddList(CommandSyntax& claim, const GlobalOptions& global) {
  CommandSyntax& command = claim.AddCommand("list", "List claims, and how many clients each has");
  auto name = std::make_shared<std::string>();
  command.AddOption("name", *name, "only this claim");
  return {&command, [=, &global] {
            v1::ListClaimsRequest request;
            request.set_name(*name);
            return AskAndShow(
                request, global, "claim-list", [&](const auto& answer) { return RenderClaims(answer, global.Style()); },
                [&](const auto& answer) { return ToJson(answer, ClaimsFolder(global)); });
          }};
}

Command AddReport(CommandSyntax& claim, const GlobalOptions& global) {
  CommandSyntax& command = claim.AddCommand("report", "Show what claims have used, also of those that have ended");
  auto name = std::make_shared<std::string>();
  command.AddOption("name", *name, "only claims of this name");
  return {&command, [=, &global] {
            v1::ReportClaimsRequest request;
            request.set_name(*name);
            return AskAndShow(
                request, global, "claim-report",
                [&](const auto& answer) { return RenderReport(answer, global.Style()); },
                [&](const auto& answer) { return ToJson(answer); });
          }};
}

Command AddRm(CommandSyntax& claim, const GlobalOptions& global) {
  CommandSyntax& command = claim.AddCommand("rm", "Remove a claim; rules, users and hints apply again; needs root");
  auto options = std::make_shared<ClaimOptions>();
  command.AddOption("name", options->name, "the claim's name", {.is_required = true});
  command.AddFlag("--dry-run", options->dry_run, "show how many clients it would affect; change nothing");
  return {&command, [=, &global] {
            v1::DeleteClaimRequest request;
            request.set_name(options->name);
            request.set_dry_run(options->dry_run);
            return AskAndShow(
                request, global, "claim-rm",
                [&](const auto& answer) { return RenderRemoved(answer, options->dry_run); },
                [&](const auto& answer) { return ToJson(answer, options->dry_run, ClaimsFolder(global)); });
          }};
}

}  // namespace

std::vector<Command> AddClaim(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& claim =
      program.AddCommand("claim", "Set priority, ceiling and weight of a job or container before it starts");
  claim.RequireCommand();
  return {AddPut(claim, global), AddList(claim, global), AddReport(claim, global), AddRm(claim, global)};
}

}  // namespace xschedd::ctl
