// The GPU priority of a Slurm job, and how squeue's answer, a cgroup's path and the file of limits are read.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tools/xschedctl/slurm/ask_slurm.h"
#include "tools/xschedctl/slurm/limits.h"
#include "tools/xschedctl/slurm/step.h"
#include "tools/xschedctl/slurm/usage.h"

namespace xschedd::ctl {
namespace {

constexpr char kFile[] = R"(
priority = -5
nice_unit = 10
[words]
high = 30
[partition.high]
priority = 20
ceiling = 50
[partition.low]
priority = -20
[partition.plain]
[qos.urgent]
priority = 40
[account.guests]
ceiling = 10
[account.staff]
ceiling = 90
[[by_slurm_priority]]
at_least = 1000
priority = 15
)";

SlurmLimits Limits() {
  const Result<SlurmLimits> limits = ParseLimits(kFile, "slurm.toml");
  REQUIRE(limits);
  return *limits;
}

SlurmJob Job(const std::string& partition, std::int64_t nice = 0) {
  SlurmJob job;
  job.partition = partition;
  job.nice = nice;
  return job;
}

std::string Mistake(std::string_view text) {
  const Result<SlurmLimits> limits = ParseLimits(text, "slurm.toml");
  REQUIRE_FALSE(limits);
  return limits.error().Line();
}

}  // namespace

TEST_CASE("a Slurm job has its partition's priority") {
  CHECK(PriorityOf(Limits(), Job("high"), "").value == 20);
  CHECK(PriorityOf(Limits(), Job("low"), "").value == -20);
  CHECK(PriorityOf(Limits(), Job("plain"), "").value == -5);
  CHECK(PriorityOf(Limits(), Job("other"), "").value == -5);
  CHECK(PriorityOf(SlurmLimits(), Job("high"), "").value == 0);
  CHECK(PriorityOf(Limits(), Job("high"), "").remark.empty());
}

TEST_CASE("a Slurm job has the priority that its user requests, up to the ceiling") {
  CHECK(PriorityOf(Limits(), Job("high"), "50").value == 50);
  CHECK(PriorityOf(Limits(), Job("high"), "50").remark.empty());
  CHECK(PriorityOf(Limits(), Job("high"), "-100").value == -100);
  CHECK(PriorityOf(Limits(), Job("high"), "high").value == 30);
  CHECK(PriorityOf(Limits(), Job("high"), "low").value == -20);
  CHECK(PriorityOf(Limits(), Job("high"), "normal").value == 0);
  const GpuPriority above = PriorityOf(Limits(), Job("high"), "51");
  CHECK(above.value == 50);
  CHECK(above.remark == "--gpu-priority=51 is limited by partition \"high\"; the job has GPU priority 50");
  // A partition with a priority and no ceiling allows that priority, and so does a file without limits.
  CHECK(PriorityOf(Limits(), Job("low"), "0").value == -20);
  CHECK(PriorityOf(Limits(), Job("low"), "0").remark ==
        "--gpu-priority=0 is limited by partition \"low\"; the job has GPU priority -20");
  CHECK(PriorityOf(SlurmLimits(), Job("high"), "1").value == 0);
  CHECK(PriorityOf(SlurmLimits(), Job("high"), "-1").value == -1);
}

TEST_CASE("a wrong --gpu-priority is ignored, and the job's log says so") {
  for (const char* wrong : {"foo", "101", "-101", "1.5", "HIGH", " 5", "5 "}) {
    const GpuPriority priority = PriorityOf(Limits(), Job("high"), wrong);
    CHECK(priority.value == 20);
    CHECK(priority.remark ==
          "--gpu-priority=\"" + std::string(wrong) +
              "\" is not low, normal, high or a number from -100 to 100; the job has GPU priority 20");
  }
  const std::string hostile = PriorityOf(Limits(), Job("high"), "\n\033[2J" + std::string(1000, 'x')).remark;
  CHECK(hostile.find_first_of("\n\033") == std::string::npos);
  CHECK(hostile.size() < 200);
}

TEST_CASE("QOS overrides the partition, and the lowest ceiling counts") {
  SlurmJob job = Job("high");
  job.qos = "urgent";
  CHECK(PriorityOf(Limits(), job, "").value == 40);
  job.account = "guests";
  CHECK(PriorityOf(Limits(), job, "").value == 10);
  CHECK(PriorityOf(Limits(), job, "50").value == 10);
  CHECK(PriorityOf(Limits(), job, "50").remark.find("account \"guests\"") != std::string::npos);
  job.account = "staff";
  CHECK(PriorityOf(Limits(), job, "80").value == 50);
}

TEST_CASE("Slurm's nice lowers a priority, and does not raise it above the ceiling") {
  CHECK(PriorityOf(Limits(), Job("high", 300), "").value == -10);
  CHECK(PriorityOf(Limits(), Job("high", -100), "").value == 30);
  CHECK(PriorityOf(Limits(), Job("high", -2'147'483'645), "").value == 50);
  CHECK(PriorityOf(Limits(), Job("high", 2'147'483'645), "").value == -100);
  CHECK(PriorityOf(Limits(), Job("low", -1'000), "").value == -20);
  SlurmLimits limits = Limits();
  limits.nice_unit = 0;
  CHECK(PriorityOf(limits, Job("high", 300), "").value == 20);
}

TEST_CASE("Slurm's own priority can give a GPU priority") {
  SlurmJob job = Job("high");
  job.priority = 999;
  CHECK(PriorityOf(Limits(), job, "").value == 20);
  job.priority = 1'000;
  CHECK(PriorityOf(Limits(), job, "").value == 15);
  CHECK(PriorityOf(Limits(), job, "5").value == 5);
}

TEST_CASE("a Slurm job may use so much of a GPU's memory as its partition allows, or less") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  const Result<SlurmLimits> limits = ParseLimits(
      "memory = \"64G\"\n[partition.high]\nmemory = \"24G\"\n[partition.low]\nmemory = \"96G\"\n"
      "[account.guests]\nmemory = \"8G\"\n[account.staff]\nmemory = \"32G\"\n",
      "slurm.toml");
  REQUIRE(limits);
  SlurmJob job = Job("high");
  CHECK(MemoryOf(*limits, job, "").limit == 24 * kGiB);
  CHECK(MemoryOf(*limits, Job("other"), "").limit == 64 * kGiB);
  CHECK(MemoryOf(*limits, Job("low"), "").limit == 96 * kGiB);
  CHECK(MemoryOf(*limits, job, "1536M").limit == 1536 * (kGiB >> 10));
  CHECK(MemoryOf(*limits, job, "24G").remark.empty());
  const GpuMemory above = MemoryOf(*limits, job, "25G");
  CHECK(above.limit == 24 * kGiB);
  CHECK(above.remark == "--gpu-memory=25G is limited by partition \"high\"; the job may have 24G of each GPU's memory");
  job.account = "guests";
  CHECK(MemoryOf(*limits, job, "").limit == 8 * kGiB);
  job.account = "staff";
  CHECK(MemoryOf(*limits, job, "").limit == 24 * kGiB);
  CHECK(MemoryOf(SlurmLimits(), job, "").limit == 0);
  CHECK(MemoryOf(SlurmLimits(), job, "8G").limit == 8 * kGiB);
  for (const char* const wrong : {"much", "24", "-1G", "0"}) {
    const GpuMemory memory = MemoryOf(SlurmLimits(), job, wrong);
    CHECK(memory.limit == 0);
    CHECK(memory.remark ==
          "--gpu-memory=\"" + std::string(wrong) + "\" is not a size such as 24G; the job has no limit");
  }
}

TEST_CASE("a mistake in the file of limits has its line") {
  CHECK(Mistake("[partition.high]\nmemory = 24\n").starts_with("slurm.toml:2:10: "));
  CHECK(Mistake("memory = \"much\"\n").starts_with("slurm.toml:1:10: "));
  CHECK(Mistake("[partition.high]\npriority = 101\n") ==
        "slurm.toml:2:12: \"priority\" = 101 is out of range; give a number from -100 to 100");
  CHECK(Mistake("\npriorty = 1\n").starts_with("slurm.toml:2:1: unknown key \"priorty\" in the file; known are"));
  CHECK(Mistake("[partition.high]\nceilling = 1\n")
            .starts_with("slurm.toml:2:1: unknown key \"ceilling\" in [partition.high]"));
  CHECK(Mistake("[partition]\nhigh = 3\n") ==
        "slurm.toml:2:8: [partition.high] is not a table; write [partition.high] and its keys below it");
  CHECK(Mistake("partition = 3\n") == "slurm.toml:1:13: \"partition\" is not a table; write [partition]");
  CHECK(Mistake("priority = \"20\"\n").starts_with("slurm.toml:1:12: \"priority\" is not a whole number"));
  CHECK(Mistake("[words]\nurgent = 1\n").starts_with("slurm.toml:2:1: unknown key \"urgent\" in [words]"));
  CHECK(Mistake("by_slurm_priority = [1]\n").find("is not a table") != std::string::npos);
  CHECK(Mistake("[[by_slurm_priority]]\npriority = 1\n").find("give it at_least and priority") != std::string::npos);
  CHECK(Mistake("[[by_slurm_priority]]\nat_least = -1\npriority = 1\n").starts_with("slurm.toml:2:12: "));
  CHECK(Mistake("[partition.high\n").starts_with("slurm.toml:1:"));
  CHECK(Mistake(std::string("a\0b", 3)).starts_with("slurm.toml:1:"));
}

TEST_CASE("an absent file of limits is one without limits; one that cannot be read is a mistake") {
  CHECK(ReadLimits("/nonexistent/slurm.toml"));
  CHECK_FALSE(ReadLimits("/proc/self"));
  const std::string path = std::filesystem::temp_directory_path() / "xschedd-slurm-test.toml";
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  CHECK_FALSE(ReadLimits(path));
  std::filesystem::remove(path);
}

TEST_CASE("squeue's answer is split into fields") {
  const std::vector<SlurmJob> jobs = ParseJobs(
      "17|high|(null)|guests|-5|4294901759|RUNNING|\n"
      "slurm_load_jobs error: something\n"
      "18|low|normal|N/A|0|x|RUNNING|\n"
      "  19|low|normal|N/A|0|1|PENDING|\n"
      "20|low|normal|");
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].id == 17);
  CHECK(jobs[0].partition == "high");
  CHECK(jobs[0].qos.empty());
  CHECK(jobs[0].account == "guests");
  CHECK(jobs[0].nice == -5);
  CHECK(jobs[0].priority == 4'294'901'759);
  CHECK(jobs[0].IsLive());
  CHECK(jobs[1].id == 19);
  CHECK_FALSE(jobs[1].IsLive());
}

TEST_CASE("a step has Slurm's cgroup if there is one") {
  const SlurmStep step = {17, "0"};
  CHECK(StepClaimName(step) == "slurm-17.0");
  const std::string scope = "/system.slice/slurmstepd.scope";
  CHECK(CgroupOfSlurm(scope + "/job_17/step_0/slurm", step) == scope + "/job_17/step_0");
  CHECK(CgroupOfSlurm(scope + "/job_17/step_0", step) == scope + "/job_17/step_0");
  CHECK_FALSE(CgroupOfSlurm(scope + "/job_17/step_01/slurm", step));
  CHECK_FALSE(CgroupOfSlurm(scope + "/job_117/step_0/slurm", step));
  CHECK_FALSE(CgroupOfSlurm("/system.slice/slurmd.service", step));
  CHECK(CgroupOfOurs("/system.slice/slurmd.service", step) == "/system.slice/slurmd.service/xschedd_17.0");
  CHECK(CgroupOfOurs("/", step) == "/xschedd_17.0");
  CHECK(IsOurs("/system.slice/slurmd.service/xschedd_17.0"));
  CHECK_FALSE(IsOurs(scope + "/job_17/step_0"));
}

TEST_CASE("the account of steps is bounded, for all to read, and keeps the mode that it was given") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "xschedd-slurm-usage";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string path = folder / "usage.jsonl";
  const auto text = [](const std::string& file) {
    std::ifstream stream(file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const auto mode = [](const std::string& file) { return fs::status(file).permissions(); };
  constexpr std::size_t kBytes = 8;
  const mode_t umask = ::umask(077);
  for (const char* const line : {"one", "two"})
    REQUIRE(AppendUsage(path, line, kBytes));
  CHECK(text(path) == "one\ntwo\n");
  // A line that two report stands once.
  for (const char* const line : {"one", "two"})
    REQUIRE(AppendUsage(path, line, kBytes));
  CHECK(text(path) == "one\ntwo\n");
  ::umask(umask);
  CHECK((mode(path) & fs::perms::others_read) != fs::perms::none);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  REQUIRE(AppendUsage(path, "three", kBytes));
  CHECK(text(path) == "three\n");
  CHECK(text(path + ".1") == "one\ntwo\n");
  REQUIRE(AppendUsage(path, "two", kBytes));
  CHECK(text(path) == "three\n");
  CHECK(mode(path) == (fs::perms::owner_read | fs::perms::owner_write));
  REQUIRE(AppendUsage(path, "a line longer than the limit", kBytes));
  CHECK(text(path + ".1") == "three\n");
  REQUIRE(AppendUsage(path, "limit"));
  CHECK(text(path) == "a line longer than the limit\nlimit\n");
  fs::remove(path);
  fs::create_symlink("elsewhere", path);
  CHECK_FALSE(AppendUsage(path, "x", kBytes));
  CHECK_FALSE(AppendUsage(folder / "missing/usage.jsonl", "x", kBytes));
  fs::remove_all(folder);
}

TEST_CASE("only xschedd's own cgroups that are old and empty are removed") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "xschedd-slurm-cgroups";
  fs::remove_all(folder);
  const auto make = [&folder](const char* name, bool is_old, bool has_content) {
    fs::create_directories(folder / name / (has_content ? "child" : ""));
    if (is_old) fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::minutes(1));
  };
  make("xschedd_1.0", true, false);
  make("xschedd_2.0", false, false);
  make("xschedd_3.0", true, true);
  make("other", true, false);
  RemoveLeftIn(folder);
  CHECK_FALSE(fs::exists(folder / "xschedd_1.0"));
  CHECK(fs::exists(folder / "xschedd_2.0"));
  CHECK(fs::exists(folder / "xschedd_3.0"));
  CHECK(fs::exists(folder / "other"));
  CHECK(MakeCgroup(folder / "xschedd_2.0"));
  CHECK_FALSE(MakeCgroup(folder / "missing/xschedd_4.0"));
  fs::remove_all(folder);
}

}  // namespace xschedd::ctl
