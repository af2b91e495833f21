// What the environment says, and what of it cannot be used.
#include <cstdlib>
#include <initializer_list>

#include "client-shim/core/environment.h"
#include "tests/catch.h"

using namespace xschedd::shim;

namespace {
constexpr const char* kNames[] = {"XSCHEDD_WEIGHT", "XSCHEDD_DEADLINE_US", "XSCHEDD_GROUP",
                                  "SLURM_JOB_ID",   "SLURM_NTASKS",        "SLURM_STEP_ID"};
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

TEST_CASE("weight and deadline are whole numbers in range, or not there", "[environment]") {
  CHECK(With({{"XSCHEDD_WEIGHT", "300"}}).weight == 300u);
  CHECK(With({{"XSCHEDD_DEADLINE_US", "3600000000"}}).deadline_us == 3'600'000'000u);
  for (const char* bad : {"0", "10001", "-5", "3x", "ten", "1.5", " 7"}) {
    CHECK_FALSE(With({{"XSCHEDD_WEIGHT", bad}}).weight);
  }
  for (const char* bad : {"0", "3600000001", "-1", "33ms"}) {
    CHECK_FALSE(With({{"XSCHEDD_DEADLINE_US", bad}}).deadline_us);
  }
  CHECK_FALSE(With({}).weight);
  CHECK_FALSE(With({}).deadline_us);
}

TEST_CASE("the tasks of a Slurm step are a group, unless a group is named or there is one task", "[environment]") {
  CHECK(With({{"SLURM_JOB_ID", "42"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "1"}}).group == "slurm-42.1");
  CHECK(With({{"SLURM_JOB_ID", "42"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "1"}}).group.empty());
  CHECK(With({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "1"}}).group.empty());
  CHECK(With({{"XSCHEDD_GROUP", "mine"}, {"SLURM_JOB_ID", "42"}, {"SLURM_NTASKS", "8"}}).group == "mine");
}
