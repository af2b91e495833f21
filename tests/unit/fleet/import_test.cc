// What the engines' records become.
#include "tools/bench/fleet/import.h"

#include "tests/unit/fleet/fleets.h"

using namespace xschedd::fleet;

namespace {

std::string SacctError(const std::string& text) {
  std::istringstream input(text);
  const auto imported = FromSacct(input, "file");
  return imported ? "none" : imported.error().what;
}

std::string PodsError(const std::string& text) {
  std::istringstream input(text);
  const auto imported = FromPods(input, "file");
  return imported ? "none" : imported.error().what;
}

const std::string kHead = "JobID|Partition|User|Submit|ElapsedRaw|TimelimitRaw|ReqTRES\n";

}  // namespace

TEST_CASE("sacct's jobs with GPUs become jobs; steps, jobs without GPUs and those that never ran do not") {
  std::istringstream input(
      kHead +
      "17|batch|u|2026-11-24T23:59:50|3600|120|billing=8,cpu=8,gres/gpu:h200=2,gres/gpu=2,mem=64G,node=1\n"
      "17.batch|batch|u|2026-11-24T23:59:50|3600||cpu=8,gres/gpu=2\n"
      "18_3|interactive|u|2026-11-25T00:00:20|60|UNLIMITED|cpu=1,gres/shard=1\n"
      "19|batch|u|2026-11-25T00:00:20|60|60|cpu=1\n"
      "20|batch|u|Unknown|0|60|gres/gpu=1\n"
      "21|batch|u|2026-11-25T00:00:10|5|60|gres/gpu=1\n");
  const auto imported = FromSacct(input, "file");
  REQUIRE(imported);
  CHECK(imported->left_out == 3);
  const Trace& trace = imported->trace;
  REQUIRE(trace.jobs.size() == 3);
  CHECK(trace.jobs[0].name == "17");
  CHECK(trace.jobs[0].demand == Demand{2, 0});
  CHECK(trace.jobs[0].seconds == 3600);
  CHECK(trace.jobs[0].limit_s == 7200);
  CHECK(trace.jobs[1].name == "21");
  CHECK(trace.jobs[1].arrival_s == 20);
  CHECK(trace.jobs[2].demand == Demand{0, 1});
  CHECK(trace.jobs[2].limit_s == 0);
  CHECK(trace.spaces[trace.jobs[2].space].name == "interactive");
  // What is written is read, and a space's shards then count for its jobs of one GPU.
  std::ostringstream written;
  WriteTrace(trace, written);
  std::string text = written.str();
  const std::string own = "\"shards\":0,\"space\":\"batch\"";
  REQUIRE(text.find(own) != std::string::npos);
  text.replace(text.find(own), own.size(), "\"shards\":2,\"space\":\"batch\"");
  const Trace read = ReadLines(text);
  CHECK(read.jobs[0].demand == Demand{2, 0});
  CHECK(read.jobs[1].demand == Demand{0, 2});
}

TEST_CASE("a wrong line of sacct is named with its field") {
  CHECK(SacctError("") == "file:0: there is no line");
  CHECK(SacctError("JobID|Partition|Submit|ElapsedRaw|ReqTRES\n") ==
        "file:1: the first line has no column TimelimitRaw");
  CHECK(SacctError(kHead + "1|b\n") == "file:2: 2 fields, and 7 are needed");
  CHECK(SacctError(kHead + "1|b|u|x|5|6|gres/gpu=1\n") ==
        "file:2: Submit \"x\" is not a time such as 2026-11-25T08:30:00");
  CHECK(SacctError(kHead + "1|b|u|x|01:00:00|6|gres/gpu=1\n") ==
        "file:2: ElapsedRaw \"01:00:00\" is not a number of seconds");
  CHECK(SacctError(kHead + "1|b|u|x|5|6|gres/gpu=x\n") == "file:2: ReqTRES \"gres/gpu=x\" has a number that is none");
  CHECK(SacctError(kHead + "1|b|u|x|5|6|cpu=1\n") == "file:2: no job has GPUs");
}

TEST_CASE("pods with GPUs become jobs, by their last record") {
  const std::string running = R"({"kind": "Pod", "metadata": {"name": "web", "namespace": "serving", "uid": "1",
     "creationTimestamp": "2026-11-25T00:00:00Z", "annotations": {"xschedd.io/priority": "20"}},
     "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "2"}}}]},
     "status": {"containerStatuses": [{"state": {"running": {"startedAt": "2026-11-25T00:00:30Z"}}}]}})";
  const std::string ended = R"({"kind": "Pod", "metadata": {"name": "job", "namespace": "batch", "uid": "2",
     "creationTimestamp": "2026-11-25T00:00:10Z"},
     "spec": {"containers": [{"resources": {"limits": {"amd.com/gpu": 2}}}]},
     "status": {"containerStatuses": [{"state": {"terminated": {"startedAt": "2026-11-25T00:01:00Z", "finishedAt": "2026-11-25T01:00:00Z"}}}]}})";
  const std::string none =
      R"({"kind": "Pod", "metadata": {"name": "dns", "uid": "3", "creationTimestamp": "2026-11-24T00:00:00Z"},
     "spec": {"containers": [{}]}, "status": {}})";
  const std::string pending = R"({"kind": "Pod", "metadata": {"name": "job", "namespace": "batch", "uid": "2",
     "creationTimestamp": "2026-11-25T00:00:10Z"}, "spec": {"containers": [{"resources": {"limits": {"amd.com/gpu": 2}}}]}, "status": {}})";
  std::istringstream input(pending + "\n{\"items\": [" + running + "," + none + "]}\n" + ended + "\n");
  const auto imported = FromPods(input, "file");
  REQUIRE(imported);
  CHECK(imported->left_out == 1);
  REQUIRE(imported->trace.jobs.size() == 2);
  const Job& web = imported->trace.jobs[0];
  CHECK(web.name == "serving/web");
  CHECK(web.priority == 20);
  CHECK(web.seconds == 3570);  // until the latest time of all
  CHECK(web.demand == Demand{1, 0});
  const Job& job = imported->trace.jobs[1];
  CHECK(job.demand == Demand{2, 0});
  CHECK(job.seconds == 3540);
  CHECK(job.arrival_s - web.arrival_s == 10);
}

TEST_CASE("a wrong pod is named with its field") {
  const std::string pod =
      R"({"metadata": {"name": "a", "creationTimestamp": "2026-11-25T00:00:00Z"}, "spec": {"containers": [{"resources": {"limits": {"amd.com/gpu": "x"}}}]}})";
  CHECK(PodsError(pod) == "file: pod default/a: \"amd.com/gpu\" is \"x\", which is not a number");
  CHECK(PodsError(R"({"metadata": {"name": "a", "creationTimestamp": "today"}})") ==
        "file: pod default/a: \"creationTimestamp\" is \"today\", which is not a time");
  CHECK(PodsError(R"({"metadata": {"name": "a"}})") == "file: pod default/a: no \"creationTimestamp\"");
  CHECK(PodsError("NAME READY\n").rfind("file: after 0 pods: not what kubectl writes", 0) == 0);
  CHECK(PodsError("{\"items\": []}") == "file: none of its 0 pods ran with GPUs");
}
