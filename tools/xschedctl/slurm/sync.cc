#include "tools/xschedctl/slurm/sync.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "common/byte_size.h"
#include "common/parse_number.h"
#include "daemon/registry/cgroups.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_claims.h"
#include "tools/xschedctl/slurm/ask_slurm.h"
#include "tools/xschedctl/slurm/step.h"
#include "tools/xschedctl/slurm/usage.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {
namespace {

std::string Label(const v1::Claim& claim, const std::string& name) {
  const auto found = claim.labels().find(name);
  return found == claim.labels().end() ? std::string() : found->second;
}

// None: it is not a claim of `slurm begin`.
std::optional<std::uint32_t> JobOf(const v1::Claim& claim) {
  if (!claim.name().starts_with(kStepClaimPrefix)) return std::nullopt;
  return xschedd::ParseNumber<std::uint32_t>(Label(claim, "job"));
}

// The ids of jobs that have claims, each once.
std::vector<std::uint32_t> JobsOf(const v1::ListClaimsResponse& claims) {
  std::vector<std::uint32_t> ids;
  for (const v1::Claim& claim : claims.claims())
    if (const auto id = JobOf(claim)) ids.push_back(*id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// Fails only if the daemon is gone: a claim may end, with its step, before it is changed.
Outcome<void> Remove(AdminClient& client, const v1::Claim& claim) {
  v1::DeleteClaimRequest request;
  request.set_name(claim.name());
  const auto answer = client.Call(request);
  if (!answer && answer.error().code == ExitCode::kNoDaemon) return tl::unexpected<Failure>(answer.error());
  if (answer) {
    Print(OneLine(claim.name()) + ": removed; its job or step has ended\n");
    RecordUsage(client, claim.name());
  }
  return {};
}

std::string LimitText(std::uint64_t bytes) {
  return bytes == 0 ? "without a limit" : ByteSizeText(bytes);
}

Outcome<void> PutAgain(AdminClient& client, const v1::Claim& claim, const SlurmJob& job, int priority,
                       std::uint64_t memory) {
  v1::PutClaimRequest request;
  *request.mutable_claim() = claim;
  request.mutable_claim()->set_priority(priority);
  SetMemory(memory, *request.mutable_claim());
  if (!job.partition.empty()) (*request.mutable_claim()->mutable_labels())["partition"] = job.partition;
  const auto answer = client.Call(request);
  if (!answer && answer.error().code == ExitCode::kNoDaemon) return tl::unexpected<Failure>(answer.error());
  const std::string name = OneLine(claim.name());
  if (answer && priority != claim.priority())
    Print(name + ": GPU priority " + std::to_string(claim.priority()) + " -> " + std::to_string(priority) + "\n");
  if (answer && memory != claim.memory_limit())
    Print(name + ": GPU memory " + LimitText(claim.memory_limit()) + " -> " + LimitText(memory) + "\n");
  return {};
}

}  // namespace

void SetMemory(std::uint64_t limit, v1::Claim& claim) {
  claim.clear_memory_limit();
  if (limit != 0) claim.set_memory_limit(limit);
}

void RecordUsage(AdminClient& client, const std::string& name) {
  v1::ReportClaimsRequest request;
  request.set_name(name);
  const auto answer = client.Call(request);
  if (!answer) return;
  // The latest that has ended is this one: a requeued job's steps use the name again.
  for (const v1::ClaimReport& report : answer->claims()) {
    if (report.ended_unix_ms() == 0) continue;
    v1::ReportClaimsResponse only;
    *only.add_claims() = report;
    Json json = ToJson(only)["claims"][0];
    json.erase("clients");
    if (const Result<void> done = AppendUsage(kSlurmUsagePath, json.dump()); !done) Print(done.error().Line() + "\n");
    return;
  }
}

Outcome<ExitCode> SyncClaims(AdminClient& client, const SlurmLimits& limits) {
  const auto claims = client.Call(v1::ListClaimsRequest());
  if (!claims) return tl::unexpected<Failure>(claims.error());
  const std::vector<std::uint32_t> ids = JobsOf(*claims);
  if (ids.empty()) return ExitCode::kOk;
  const Result<std::vector<SlurmJob>> answer = AskSlurm(ids);
  if (!answer) return tl::unexpected<Failure>({ExitCode::kRefused, answer.error()});
  std::map<std::uint32_t, SlurmJob> jobs;
  for (const SlurmJob& job : *answer)
    jobs[job.id] = job;
  for (const v1::Claim& claim : claims->claims()) {
    const std::optional<std::uint32_t> id = JobOf(claim);
    if (!id) continue;
    const auto job = jobs.find(*id);
    const bool is_live = job != jobs.end() && job->second.IsLive();
    const std::string directory = HostHierarchy().root + claim.cgroup();
    // Of a job that has ended, nothing begins any more, however young its cgroup is.
    if (!is_live && IsOurs(claim.cgroup())) RemoveSoon(directory);
    Outcome<void> done;
    if (!is_live || RemoveIfLeft(directory)) {
      done = Remove(client, claim);
    } else {
      const int priority = PriorityOf(limits, job->second, Label(claim, kRequestLabel)).value;
      const std::uint64_t memory = MemoryOf(limits, job->second, Label(claim, kMemoryRequestLabel)).limit;
      if (priority != claim.priority() || memory != claim.memory_limit())
        done = PutAgain(client, claim, job->second, priority, memory);
    }
    if (!done) return tl::unexpected<Failure>(done.error());
  }
  return ExitCode::kOk;
}

}  // namespace xschedd::ctl
