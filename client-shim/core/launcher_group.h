// The group of a process that a launcher has started as one rank of several: ranks run together or wait for each other.
// Launchers tell their ranks about each other by environment variables, each in its own way; checked in this order,
// since one launcher may have started another:
//   torchrun and launchers that work like it (DeepSpeed, Accelerate): MASTER_PORT, WORLD_SIZE, TORCHELASTIC_RUN_ID
//   Open MPI and whatever uses PMIx: PMIX_NAMESPACE or, before that, OMPI_MCA_ess_base_jobid; OMPI_COMM_WORLD_SIZE
//   PMI (MPICH, Intel MPI, MVAPICH): PMI_SIZE, PMI_JOBID; without that, ranks of one launcher are its children
//   Slurm: SLURM_JOB_ID, SLURM_STEP_ID, SLURM_NTASKS
// Names need not be secret: a group belongs to a user, as the daemon sees it. But one user may have the same job twice,
// in two containers, so the PID namespace is part of the name.
// Thread rule: any thread; reads the environment.
#pragma once

#include <string>

namespace xschedd::shim {

// Empty: no launcher, or one rank.
std::string LauncherGroup();

}  // namespace xschedd::shim
