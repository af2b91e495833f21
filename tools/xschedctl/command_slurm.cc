// `xschedctl slurm begin|end|sync|check`: Slurm's plugin (tools/slurm) runs the first two when a step begins and ends,
// a timer runs the third to update claims after changes of jobs, and the fourth checks the file of limits.
#include <pwd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <memory>

#include "common/byte_size.h"
#include "daemon/registry/cgroups.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/installed_shim.h"
#include "tools/xschedctl/slurm/ask_slurm.h"
#include "tools/xschedctl/slurm/limits.h"
#include "tools/xschedctl/slurm/step.h"
#include "tools/xschedctl/slurm/sync.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {
namespace {

struct StepOptions {
  SlurmStep step;
  std::uint32_t uid = 0;
  std::string requested;
  std::string requested_memory;
  std::string limits = kSlurmLimitsPath;
};

struct CheckOptions {
  SlurmJob job;
  int nice = 0;
  std::string requested;
  std::string requested_memory;
  std::string limits = kSlurmLimitsPath;
};

// Prints a line for the plugin: a word and its value. Each is printed at once, because the plugin stops waiting after a
// time limit.
void PrintLine(const char* word, const std::string& value) {
  Print(std::string(word) + " " + OneLine(value) + "\n");
}

std::string OwnCgroup() {
  std::ifstream file("/proc/self/cgroup");
  return CgroupIn(HostHierarchy(), std::string(std::istreambuf_iterator<char>(file), {})).value_or("");
}

std::string UserName(std::uint32_t uid) {
  std::array<char, 16'384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->pw_name;
  return std::to_string(uid);
}

// Accepts a step's number or one of Slurm's words, because it becomes part of the name of a directory.
bool IsStepName(const std::string& name) {
  return !name.empty() && name.size() <= 32 &&
         name.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") == std::string::npos;
}

Result<SlurmJob> AskForJob(std::uint32_t id) {
  const Result<std::vector<SlurmJob>> jobs = AskSlurm({id});
  if (!jobs) return tl::unexpected<Error>(jobs.error());
  for (const SlurmJob& job : *jobs)
    if (job.id == id) return job;
  return Fail("squeue does not know the job");
}

// The cgroup of the step, which is made if Slurm has none that the daemon can see; empty: there is none.
std::string CgroupForStep(const SlurmStep& step) {
  const std::string path = OwnCgroup();
  if (path.empty()) {
    PrintLine("trouble", "this host has no cgroups, so the GPU priority has no effect");
    return {};
  }
  if (const std::optional<std::string> cgroup = CgroupOfSlurm(path, step)) return *cgroup;
  RemoveLeftIn(HostHierarchy().root + path);
  std::string cgroup = CgroupOfOurs(path, step);
  const std::string directory = HostHierarchy().root + cgroup;
  if (const Result<void> made = MakeCgroup(directory); !made) {
    PrintLine("trouble", made.error().Line() + "; the GPU priority has no effect");
    return {};
  }
  PrintLine("cgroup", directory);
  return cgroup;
}

v1::PutClaimRequest ClaimFor(const StepOptions& options, const SlurmJob& job, int priority, std::uint64_t memory) {
  v1::PutClaimRequest request;
  v1::Claim& claim = *request.mutable_claim();
  claim.set_name(StepClaimName(options.step));
  claim.set_priority(priority);
  SetMemory(memory, claim);
  // The ranks of a parallel step wait for each other; a batch script's programs need not be related.
  const bool has_ranks = options.step.name.find_first_not_of("0123456789") == std::string::npos;
  if (has_ranks) claim.set_group(claim.name());
  auto& labels = *claim.mutable_labels();
  labels["job"] = std::to_string(options.step.job);
  labels["step"] = options.step.name;
  labels["user"] = UserName(options.uid);
  if (!job.partition.empty()) labels["partition"] = job.partition;
  if (!options.requested.empty()) labels[kRequestLabel] = options.requested.substr(0, kMaxRequestBytes);
  if (!options.requested_memory.empty())
    labels[kMemoryRequestLabel] = options.requested_memory.substr(0, kMaxRequestBytes);
  return request;
}

Outcome<ExitCode> Begin(const StepOptions& options, const GlobalOptions& global) {
  if (!IsStepName(options.step.name))
    return UsageFailure({"\"" + options.step.name + "\" is not a step", "give a number, batch, extern or interactive"});
  if (const Result<std::string> shim = InstalledShim("")) {
    PrintLine("preload", *shim);
  } else {
    PrintLine("trouble", shim.error().Line());
  }
  Result<SlurmLimits> limits = ReadLimits(options.limits);
  if (!limits) {
    PrintLine("trouble", limits.error().Line() + "; no setting of it has an effect until it is corrected");
    limits = SlurmLimits();
  }
  Result<SlurmJob> job = AskForJob(options.step.job);
  if (!job) {
    PrintLine("trouble", job.error().Line() + "; its partition's limits have no effect yet");
    job = SlurmJob();
  }
  const GpuPriority priority = PriorityOf(*limits, *job, options.requested);
  if (!priority.remark.empty()) PrintLine("say", priority.remark);
  const GpuMemory memory = MemoryOf(*limits, *job, options.requested_memory);
  if (!memory.remark.empty()) PrintLine("say", memory.remark);
  v1::PutClaimRequest request = ClaimFor(options, *job, priority.value, memory.limit);
  request.mutable_claim()->set_cgroup(CgroupForStep(options.step));
  if (request.claim().cgroup().empty()) return ExitCode::kRefused;
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) {
    PrintLine("trouble", client.error().error.Line() + "; the job runs without a GPU priority");
    return client.error().code;
  }
  if (const auto answer = client->Call(request); !answer) {
    PrintLine("trouble", answer.error().error.Line() + "; the job runs without a GPU priority");
    return answer.error().code;
  }
  return ExitCode::kOk;
}

Outcome<ExitCode> End(const StepOptions& options, const GlobalOptions& global) {
  if (!IsStepName(options.step.name))
    return UsageFailure({"\"" + options.step.name + "\" is not a step", "give a number, batch, extern or interactive"});
  // If a process is left in it, the beginning of a later step removes it.
  RemoveSoon(HostHierarchy().root + CgroupOfOurs(OwnCgroup(), options.step));
  v1::DeleteClaimRequest request;
  request.set_name(StepClaimName(options.step));
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const auto answer = client->Call(request);
  // The claim may have ended with its cgroup, or never been made.
  if (!answer && answer.error().code != ExitCode::kNoClient) return tl::unexpected<Failure>(answer.error());
  RecordUsage(*client, request.name());
  return ExitCode::kOk;
}

Outcome<ExitCode> Sync(const std::string& path, const GlobalOptions& global) {
  const Result<SlurmLimits> limits = ReadLimits(path);
  if (!limits) return tl::unexpected<Failure>({ExitCode::kFound, limits.error()});
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  return SyncClaims(*client, *limits);
}

Outcome<ExitCode> CheckLimits(const CheckOptions& options) {
  const Result<SlurmLimits> limits = ReadLimits(options.limits);
  if (!limits) return tl::unexpected<Failure>({ExitCode::kFound, limits.error()});
  SlurmJob job = options.job;
  job.nice = options.nice;
  const GpuPriority priority = PriorityOf(*limits, job, options.requested);
  Print("GPU priority " + std::to_string(priority.value) + "\n");
  const GpuMemory memory = MemoryOf(*limits, job, options.requested_memory);
  if (memory.limit != 0) Print("GPU memory " + ByteSizeText(memory.limit) + " on each GPU\n");
  for (const std::string& remark : {priority.remark, memory.remark})
    if (!remark.empty()) Print("the job's log says: xschedd: " + remark + "\n");
  return ExitCode::kOk;
}

void AddStepOptions(CommandSyntax& command, StepOptions& options) {
  command.AddOption("--job", options.step.job, "the job's number", {.is_required = true});
  command.AddOption("--step", options.step.name, "the step's number, or batch, extern or interactive",
                    {.is_required = true});
}

// No command has JSON output: begin and end are run by the plugin, sync by a timer, and check by an administrator.
std::function<Outcome<ExitCode>()> WithoutJson(const GlobalOptions& global, std::function<Outcome<ExitCode>()> action) {
  return [&global, action = std::move(action)]() -> Outcome<ExitCode> {
    if (global.json) return UsageFailure({"slurm takes no --json", "leave out --json"});
    return action();
  };
}

constexpr char kLimitsHelp[] = "the file of limits (default: /etc/xschedd/slurm.toml)";

}  // namespace

std::vector<Command> AddSlurm(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& slurm = program.AddCommand("slurm", "Give the jobs of Slurm their GPU priorities");
  slurm.RequireCommand();
  const auto step = std::make_shared<StepOptions>();
  const auto check = std::make_shared<CheckOptions>();

  CommandSyntax& begin = slurm.AddCommand("begin", "Put a step's claim; Slurm's plugin runs this; needs root");
  AddStepOptions(begin, *step);
  begin.AddOption("--uid", step->uid, "the job's user", {.is_required = true});
  begin.AddOption("--gpu-priority", step->requested, "what the user asked for");
  begin.AddOption("--gpu-memory", step->requested_memory, "what the user asked for", {.placeholder = "SIZE"});
  begin.AddOption("--limits", step->limits, kLimitsHelp, {.placeholder = "FILE"});

  CommandSyntax& end = slurm.AddCommand("end", "Remove a step's claim; Slurm's plugin runs this; needs root");
  AddStepOptions(end, *step);

  CommandSyntax& sync = slurm.AddCommand("sync", "Update claims after changes by scontrol update job; needs root");
  sync.AddOption("--limits", step->limits, kLimitsHelp, {.placeholder = "FILE"});

  CommandSyntax& checking = slurm.AddCommand("check", "Check the file of limits, and show which priority a job has");
  checking.AddOption("--partition", check->job.partition, "the job's partition");
  checking.AddOption("--qos", check->job.qos, "its QOS");
  checking.AddOption("--account", check->job.account, "its account");
  checking.AddOption("--nice", check->nice, "its nice");
  checking.AddOption("--slurm-priority", check->job.priority, "its priority in Slurm");
  checking.AddOption("--gpu-priority", check->requested, "what its user asks for");
  checking.AddOption("--gpu-memory", check->requested_memory, "what its user asks for", {.placeholder = "SIZE"});
  checking.AddOption("--limits", check->limits, kLimitsHelp, {.placeholder = "FILE"});

  return {{&begin, WithoutJson(global, [=, &global] { return Begin(*step, global); })},
          {&end, WithoutJson(global, [=, &global] { return End(*step, global); })},
          {&sync, WithoutJson(global, [=, &global] { return Sync(step->limits, global); })},
          {&checking, WithoutJson(global, [=] { return CheckLimits(*check); })}};
}

}  // namespace xschedd::ctl
