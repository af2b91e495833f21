// The group of a process that a launcher has started as one of several ranks, which run together or wait for each
// other. Each launcher describes the job to its ranks by environment variables of its own. They are checked in this
// order, because one launcher may have started another:
//   torchrun and launchers that work like it (DeepSpeed, Accelerate): MASTER_PORT, WORLD_SIZE, TORCHELASTIC_RUN_ID
//   Open MPI and whatever uses PMIx: PMIX_NAMESPACE or, before that, OMPI_MCA_ess_base_jobid; OMPI_COMM_WORLD_SIZE
//   PMI (MPICH, Intel MPI, MVAPICH): PMI_SIZE, PMI_JOBID; without a job id, the launcher is the ranks' parent process
//   Slurm: SLURM_JOB_ID, SLURM_STEP_ID, SLURM_NTASKS
// Names need not be secret, because a group belongs to one user. But that user may run the same job in two containers,
// so the PID namespace is part of the name.
// Thread rule: any thread; reads the environment.
#pragma once

#include <string>

namespace xschedd::shim {

// Empty: no launcher, or only one rank.
std::string LauncherGroup();

}  // namespace xschedd::shim
