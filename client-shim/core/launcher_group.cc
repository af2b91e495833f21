#include "client-shim/core/launcher_group.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "client-shim/core/environment.h"

namespace xschedd::shim {
namespace {

std::string Get(const char* name) {
  return EnvironmentVariable(name);
}

bool IsMoreThanOne(const char* name) {
  return std::atol(Get(name).c_str()) > 1;
}

// The port at which ranks meet is unique on a node at any time. The run's id is not: it is "none" by default, and often
// a constant in a script.
std::string TorchGroup() {
  const std::string port = Get("MASTER_PORT");
  if (port.empty() || Get("RANK").empty() || !IsMoreThanOne("WORLD_SIZE")) return "";
  const std::string run = Get("TORCHELASTIC_RUN_ID");
  return "torch-" + port + (run.empty() || run == "none" ? "" : "-" + run);
}

std::string PmixGroup() {
  if (!Get("OMPI_COMM_WORLD_SIZE").empty() && !IsMoreThanOne("OMPI_COMM_WORLD_SIZE")) return "";
  const std::string pmix = Get("PMIX_NAMESPACE");
  const bool is_slurms = pmix.starts_with("slurm.");  // Slurm's own variables say the same
  const std::string job = pmix.empty() ? Get("OMPI_MCA_ess_base_jobid") : pmix;
  return job.empty() || is_slurms ? "" : "mpi-" + job;
}

std::string PmiGroup() {
  if (!IsMoreThanOne("PMI_SIZE") || !Get("SLURM_STEP_ID").empty()) return "";
  const std::string job = Get("PMI_JOBID");
  return "pmi-" + (job.empty() ? "by-" + std::to_string(::getppid()) : job);
}

std::string SlurmGroup() {
  const std::string job = Get("SLURM_JOB_ID");
  if (job.empty() || !IsMoreThanOne("SLURM_NTASKS")) return "";
  return "slurm-" + job + "." + Get("SLURM_STEP_ID");
}

// "@4026532200" outside of the host's PID namespace, else empty.
std::string PidNamespaceSuffix() {
  constexpr std::string_view kHost = "pid:[4026531836]";  // PROC_PID_INIT_INO, linux/proc_ns.h
  char text[64];
  const ssize_t length = ::readlink("/proc/self/ns/pid", text, sizeof(text));
  if (length <= 6) return "";
  const std::string_view name(text, static_cast<std::size_t>(length));
  return name == kHost ? "" : "@" + std::string(name.substr(5, name.size() - 6));
}

}  // namespace

std::string LauncherGroup() {
  for (const auto group : {TorchGroup, PmixGroup, PmiGroup})
    if (const std::string name = group(); !name.empty()) return name + PidNamespaceSuffix();
  return SlurmGroup();
}

}  // namespace xschedd::shim
