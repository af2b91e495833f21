// Settings in the environment, valid and invalid.
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <string>

#include "client-shim/core/environment.h"
#include "tests/catch.h"

using namespace xschedd::shim;

namespace {
constexpr const char* kNames[] = {
    "XSCHEDD_WEIGHT", "XSCHEDD_DEADLINE_US",    "XSCHEDD_STREAMS", "XSCHEDD_MEMORY",       "XSCHEDD_GROUP",
    "SLURM_JOB_ID",   "SLURM_NTASKS",           "SLURM_STEP_ID",   "MASTER_PORT",          "RANK",
    "WORLD_SIZE",     "TORCHELASTIC_RUN_ID",    "PMIX_NAMESPACE",  "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
    "PMI_JOBID",      "OMPI_MCA_ess_base_jobid"};
struct Set {
  const char* name;
  const char* value;
};
Environment With(std::initializer_list<Set> values) {
  for (const char* name : kNames)
    ::unsetenv(name);
  for (const Set& set : values)
    ::setenv(set.name, set.value, 1);
  return Environment::Read();
}
}  // namespace

TEST_CASE("weight and deadline are whole numbers in range, or are ignored", "[environment]") {
  CHECK(With({{"XSCHEDD_WEIGHT", "300"}}).weight == 300u);
  CHECK(With({{"XSCHEDD_DEADLINE_US", "3600000000"}}).deadline_us == 3'600'000'000u);
  for (const char* bad : {"0", "10001", "-5", "3x", "ten", "1.5", " 7"}) {
    CHECK_FALSE(With({{"XSCHEDD_WEIGHT", bad}}).weight);
  }
  for (const char* bad : {"0", "3600000001", "-1", "33ms"}) {
    CHECK_FALSE(With({{"XSCHEDD_DEADLINE_US", bad}}).deadline_us);
  }
  CHECK(With({{"XSCHEDD_LATENCY", "strict"}}).latency == "strict");
  CHECK(With({{"XSCHEDD_LATENCY", "low"}}).latency.empty());
  CHECK(With({{"XSCHEDD_STREAMS", "1"}}).schedules_streams);
  for (const char* off : {"", "0", "2", "yes"})
    CHECK_FALSE(With({{"XSCHEDD_STREAMS", off}}).schedules_streams);
  CHECK(With({{"XSCHEDD_MEMORY", "24G"}}).memory_bytes == std::uint64_t{24} << 30);
  for (const char* none : {"", "24GB", "-1", "G", "99999999999999999999"})
    CHECK(With({{"XSCHEDD_MEMORY", none}}).memory_bytes == 0);
  CHECK_FALSE(With({}).weight);
  CHECK_FALSE(With({}).deadline_us);
}

TEST_CASE("the tasks of a Slurm step are a group, unless a group is named or there is one task", "[environment]") {
  CHECK(With({{"SLURM_JOB_ID", "42"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "1"}}).group == "slurm-42.1");
  CHECK(With({{"SLURM_JOB_ID", "42"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "1"}}).group.empty());
  CHECK(With({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "1"}}).group.empty());
  CHECK(With({{"XSCHEDD_GROUP", "mine"}, {"SLURM_JOB_ID", "42"}, {"SLURM_NTASKS", "8"}}).group == "mine");
}

TEST_CASE("the ranks of a launcher are a group", "[environment]") {
  // In a PID namespace of its own, that is a part of the name.
  const auto group = [](std::initializer_list<Set> values) {
    const std::string name = With(values).group;
    return name.substr(0, name.find('@'));
  };
  SECTION("torchrun and similar launchers") {
    CHECK(group({{"MASTER_PORT", "29500"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}}) == "torch-29500");
    CHECK(group({{"MASTER_PORT", "29500"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "none"}}) ==
          "torch-29500");
    CHECK(group({{"MASTER_PORT", "29501"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "r7"}}) ==
          "torch-29501-r7");
    CHECK(group({{"MASTER_PORT", "29500"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}).empty());
    CHECK(group({{"MASTER_PORT", "29500"}, {"WORLD_SIZE", "2"}}).empty());  // a script that sets it for its children
  }
  SECTION("Open MPI and PMIx") {
    CHECK(group({{"PMIX_NAMESPACE", "prterun-node-7@1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) == "mpi-prterun-node-7");
    CHECK(group({{"PMIX_NAMESPACE", "2451898369"}, {"OMPI_MCA_ess_base_jobid", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) ==
          "mpi-2451898369");
    CHECK(group({{"OMPI_MCA_ess_base_jobid", "77"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) == "mpi-77");
    CHECK(group({{"PMIX_NAMESPACE", "j"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).empty());
    CHECK(group({{"PMIX_NAMESPACE", "slurm.pmix.42.1"},
                 {"SLURM_JOB_ID", "42"},
                 {"SLURM_NTASKS", "8"},
                 {"SLURM_STEP_ID", "1"}}) == "slurm-42.1");
  }
  SECTION("PMI") {
    CHECK(group({{"PMI_SIZE", "2"}, {"PMI_JOBID", "5"}}) == "pmi-5");
    CHECK(group({{"PMI_SIZE", "2"}}) == "pmi-by-" + std::to_string(::getppid()));
    CHECK(group({{"PMI_SIZE", "1"}, {"PMI_JOBID", "5"}}).empty());
  }
  SECTION("the innermost, unless a group is named") {
    CHECK(group({{"MASTER_PORT", "1"},
                 {"RANK", "0"},
                 {"WORLD_SIZE", "2"},
                 {"SLURM_JOB_ID", "42"},
                 {"SLURM_NTASKS", "8"}}) == "torch-1");
    CHECK(group({{"XSCHEDD_GROUP", "mine"}, {"MASTER_PORT", "1"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}}) == "mine");
  }
}
