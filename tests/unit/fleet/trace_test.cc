// The format: a trace survives writing and reading, and errors name line and field.
#include "tests/unit/fleet/fleets.h"

using namespace xschedd::fleet;

namespace {

std::string ErrorOf(const std::string& lines) {
  std::istringstream input(lines);
  Trace trace;
  const xschedd::Result<void> done = ReadTrace(input, "file", trace);
  return done ? "none" : done.error().Line();
}

const std::string kSpace = "{\"space\": \"q\", \"pattern\": \"work\", \"shards\": 2, \"priority\": -20, \"tier\": 3}\n";

}  // namespace

TEST_CASE("a job has its own values, else its space's") {
  const Trace trace = ReadLines(kSpace + R"(
    {"job": "late", "space": "q", "at_s": 9, "seconds": 60}
    {"job": "own", "space": "q", "at_s": 1.5, "seconds": 60, "shards": 1, "priority": 7, "pattern": "idle", "limit_s": 90}
    {"job": "whole", "space": "q", "at_s": 2, "seconds": 60, "shards": 0}
    {"job": "gang", "space": "q", "at_s": 3, "seconds": 60, "gpus": 4}
  )");
  REQUIRE(trace.jobs.size() == 4);
  CHECK(trace.jobs[0].name == "own");  // by arrival
  CHECK(trace.jobs[0].demand == Demand{0, 1});
  CHECK(trace.jobs[0].priority == 7);
  CHECK(trace.jobs[0].pattern == "idle");
  CHECK(trace.jobs[0].limit_s == 90);
  CHECK(trace.jobs[1].demand == Demand{1, 0});
  CHECK(trace.jobs[2].demand == Demand{4, 0});
  CHECK(trace.jobs[3].demand == Demand{0, 2});
  CHECK(trace.jobs[3].priority == -20);
  CHECK(trace.spaces[0].tier == 3);
  std::ostringstream first;
  WriteTrace(trace, first);
  std::ostringstream second;
  WriteTrace(ReadLines(first.str()), second);
  CHECK(second.str() == first.str());
}

TEST_CASE("a wrong line is one error that names line and field") {
  const auto starts = [](const std::string& text, const std::string& start) {
    INFO(text);
    CHECK(text.rfind(start, 0) == 0);
    CHECK(text.find('\n') == std::string::npos);
  };
  const std::string job = "{\"job\": \"a\", \"space\": \"q\", \"at_s\": 1, ";
  starts(ErrorOf(kSpace + job + "\"seconds\": \"x\"}"), "file:2: a job: \"seconds\" must be a number");
  starts(ErrorOf(kSpace + job + "\"seconds\": -1}"), "file:2: a job: \"seconds\" is -1, which is not from");
  starts(ErrorOf(kSpace + job + "\"gpus\": 1}"), "file:2: a job needs \"seconds\"");
  starts(ErrorOf(kSpace + job + "\"seconds\": 1, \"gpus\": 1.5}"),
         "file:2: \"gpus\" is 1.5, which is not a whole number");
  starts(ErrorOf(kSpace + job + "\"seconds\": 1, \"gpus\": 2, \"shards\": 1}"),
         "file:2: a job: \"shards\" are of one GPU");
  starts(ErrorOf(kSpace + job + "\"seconds\": 1, \"priority\": 101}"), "file:2: a job: \"priority\" is 101");
  starts(ErrorOf(kSpace + job + "\"seconds\": 1, \"prio\": 1}"), "file:2: a job has no \"prio\"; it has job, ");
  starts(ErrorOf("{\"job\": \"a\", \"space\": \"r\", \"at_s\": 1, \"seconds\": 1}"),
         "file:1: a job: \"space\" is \"r\"");
  starts(ErrorOf("{\"space\": \"q\"}\n" + job + "\"seconds\": 1}"), "file:2: a job needs \"pattern\"");
  starts(ErrorOf(kSpace + kSpace), "file:2: there is already a space \"q\"");
  starts(ErrorOf("\n[1]"), "file:2: each line must be an object");
  starts(ErrorOf("{\"jib\": 1}"), "file:1: a line must have \"job\" or \"space\"");
  starts(ErrorOf(kSpace + "{\"job\": "), "file:2: not JSON: ");
}

TEST_CASE("a job that no fleet of this size can hold, or of an unknown pattern, is named") {
  const Patterns patterns = TestPatterns();
  const FleetSize size{.nodes = 2, .gpus = 8, .shards = 4};
  const std::string space =
      "{\"space\": \"q\", \"pattern\": \"work\"}\n{\"job\": \"a\", \"space\": \"q\", \"at_s\": 0, ";
  const auto error = [&](const std::string& rest) {
    const auto found = JobPatterns(ReadLines(space + "\"seconds\": 1, " + rest + "}"), patterns, size);
    return found ? std::string("none") : found.error().what;
  };
  CHECK(error("\"gpus\": 16") == "none");
  CHECK(error("\"gpus\": 17") == "job \"a\" asks for 17 GPUs, and the fleet has 2 nodes of 8 GPUs of 4 shards");
  CHECK(error("\"shards\": 5") ==
        "job \"a\" asks for 5 shards of one GPU, and the fleet has 2 nodes of 8 GPUs of 4 shards");
  CHECK(error("\"pattern\": \"x\"") == "job \"a\": there is no pattern \"x\"");
}

TEST_CASE("a pattern that cannot stand for a job is refused by name") {
  const auto error = [](const std::string& client) {
    std::istringstream input("{\"workload\": \"t\", \"seconds\": 1, \"devices\": 2}\n{\"client\": \"a\", " + client +
                             "}\n");
    const auto patterns = ReadPatterns(input, "file");
    return patterns ? std::string("none") : patterns.error().what;
  };
  const std::string work = "\"arrivals\": {\"kind\": \"saturating\"}, \"kernels\": [{\"us\": 1}]";
  CHECK(error(work) == "none");
  CHECK(error("\"devices\": [0, 1], " + work) == "file: \"a\" is on several devices");
  CHECK(error("\"group\": \"g\", " + work) == "file: \"a\" is in a group");
  CHECK(error("\"arrivals\": {\"kind\": \"given\"}") == "file: \"a\" has a list of requests, which ends");
}
