#include "client-shim/core/launcher_group.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace xschedd::shim {
namespace {

std::string Get(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool Several(const char* name) {
  return std::atol(Get(name).c_str()) > 1;
}

// Of the port that ranks meet at there is one at a time in a node; the run's id is "none" where nobody gave one, and
// often a constant of a script where somebody did.
std::string TorchGroup() {
  const std::string port = Get("MASTER_PORT");
  if (port.empty() || Get("RANK").empty() || !Several("WORLD_SIZE")) return "";
  const std::string run = Get("TORCHELASTIC_RUN_ID");
  return "torch-" + port + (run.empty() || run == "none" ? "" : "-" + run);
}

std::string PmixGroup() {
  if (!Get("OMPI_COMM_WORLD_SIZE").empty() && !Several("OMPI_COMM_WORLD_SIZE")) return "";
  const std::string pmix = Get("PMIX_NAMESPACE");
  const bool is_slurms = pmix.starts_with("slurm.");  // which says the same in its own variables
  const std::string job = pmix.empty() ? Get("OMPI_MCA_ess_base_jobid") : pmix;
  return job.empty() || is_slurms ? "" : "mpi-" + job;
}

std::string PmiGroup() {
  if (!Several("PMI_SIZE") || !Get("SLURM_STEP_ID").empty()) return "";
  const std::string job = Get("PMI_JOBID");
  return "pmi-" + (job.empty() ? "by-" + std::to_string(::getppid()) : job);
}

std::string SlurmGroup() {
  const std::string job = Get("SLURM_JOB_ID");
  if (job.empty() || !Several("SLURM_NTASKS")) return "";
  return "slurm-" + job + "." + Get("SLURM_STEP_ID");
}

// "@4026532200" in a PID namespace of its own; the host's has a number that the kernel fixes.
std::string Place() {
  constexpr std::string_view kHost = "pid:[4026531836]";
  char text[64];
  const ssize_t length = ::readlink("/proc/self/ns/pid", text, sizeof(text));
  if (length <= 6) return "";
  const std::string_view name(text, static_cast<std::size_t>(length));
  return name == kHost ? "" : "@" + std::string(name.substr(5, name.size() - 6));
}

}  // namespace

std::string LauncherGroup() {
  for (const auto group : {TorchGroup, PmixGroup, PmiGroup})
    if (const std::string name = group(); !name.empty()) return name + Place();
  return SlurmGroup();
}

}  // namespace xschedd::shim
