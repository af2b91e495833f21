// The format: a workload survives writing and reading, and errors name their line.
#include <sstream>

#include "tests/unit/simulate/workloads.h"
#include "tools/bench/simulate/parameters.h"

using namespace xschedd::simulate;

namespace {

std::string ErrorOf(const std::string& lines) {
  std::istringstream input(lines);
  const xschedd::Result<Workload> workload = ReadWorkload(input, "file");
  return workload ? "none" : workload.error().Line();
}

const std::string kHead = "{\"workload\": \"t\", \"seconds\": 1, \"devices\": 2}\n";

}  // namespace

TEST_CASE("a workload survives writing and reading") {
  const Workload workload = Read(kHead + R"(
    {"client": "a", "class": "k", "priority": -3, "weight": 75, "deadline_ms": 33, "streams": 2, "spread": 0.25, "group": "g", "barrier": true, "devices": [1, 0], "arrivals": {"kind": "onoff", "rate": 3, "on_ms": 4, "off_ms": 5}, "kernels": [{"us": 1.5, "count": 2}, {"us": 3, "gap_us": 7}]}
    {"client": "b", "count": 3, "devices": "dealt", "arrivals": {"kind": "given"}}
    {"request": "b-1", "at_ms": 4, "kernels": [{"us": 9}]}
    {"request": "b-1", "at_ms": 2, "kernels": [{"us": 9}]}
  )");
  REQUIRE(workload.clients.size() == 4);
  CHECK(workload.clients[0].devices == std::vector<std::uint32_t>{0, 1});
  CHECK(workload.clients[0].deadline_ns == 33'000'000);
  CHECK(workload.clients[0].programs[0][0].kernel_ns == 1500);
  CHECK(workload.clients[3].devices == std::vector<std::uint32_t>{0});  // dealt: 0, 1, 0
  CHECK(workload.clients[2].name == "b-1");
  CHECK(workload.clients[2].class_name == "b");
  CHECK(workload.clients[2].given[0].at_ns == 2'000'000);
  CHECK(workload.clients[2].programs.size() == 1);
  std::ostringstream first;
  WriteWorkload(workload, first);
  std::ostringstream second;
  WriteWorkload(Read(first.str()), second);
  CHECK(second.str() == first.str());
}

TEST_CASE("the kinds of device and host are read and written, and a repeated program equals a long one") {
  const std::string head = "{\"workload\": \"t\", \"seconds\": 1, \"side_by_side\": 8, \"slower\": 0.25, ";
  const Workload workload = Read(head + R"("slice_us": 2048, "switch_us": 147}
    {"client": "a", "repeat": 3, "arrivals": {"kind": "closed"}, "kernels": [{"us": 20, "count": 9, "launch_us": 45}, {"us": 30, "gap_us": 60}]}
  )");
  CHECK(workload.kind.side_by_side == 8);
  CHECK(workload.kind.slower == 0.25);
  CHECK(workload.kind.slice_ns == 2'048'000);
  CHECK(workload.kind.switch_ns == 147'000);
  const Program& program = workload.clients[0].programs[0];
  REQUIRE(program.size() == 6);
  CHECK(program[4].kernel_ns == 20'000);
  CHECK(program[4].launch_ns == 45'000);
  CHECK(program[5].launch_ns == 0);
  CHECK(program[5].gap_ns == 60'000);
  std::ostringstream first;
  WriteWorkload(workload, first);
  std::ostringstream second;
  const Workload again = Read(first.str());
  WriteWorkload(again, second);
  CHECK(second.str() == first.str());
  CHECK(again.kind.slice_ns == 2'048'000);
  CHECK(again.clients[0].programs[0][4].launch_ns == 45'000);
  CHECK_FALSE(
      Read(kHead + R"({"client": "a", "arrivals": {"kind": "closed"}, "kernels": [{"us": 1}]})").kind.HasSlices());
}

TEST_CASE("an error names its line") {
  const std::string client = R"({"client": "a", "arrivals": {"kind": "closed"}, "kernels": [{"us": 1}], )";
  CHECK(ErrorOf("") ==
        "file:0: there is no line with \"workload\"; docs/contributing/simulator.md describes the format");
  CHECK(ErrorOf(kHead) == "file:1: there is no client; docs/contributing/simulator.md describes the format");
  const auto has = [&](const std::string& lines, const std::string& part) {
    const std::string error = ErrorOf(lines);
    INFO(error);
    CHECK(error.find(part) != std::string::npos);
  };
  has("{]", "file:1: not JSON");
  has(kHead + client + "\"prioritee\": 3}", "file:2: a client has no \"prioritee\"");
  has(kHead + client + "\"priority\": 101}", "which is not from -100 to 100");
  has(kHead + client + "\"devices\": [2]}", "there is no device 2");
  has(kHead + client + "\"devices\": [1, 1]}", "named twice");
  has(kHead + client + "\"class\": 7}", "must be a string");
  has(kHead + client + "\"weight\": 0}", "not from 1");
  has(kHead + client + "\"class\": \"x\"}\n" + client + "\"class\": \"x\"}", "file:3: there is already a client");
  has(kHead + R"({"client": "a", "arrivals": {"kind": "often"}, "kernels": [{"us": 1}]})", "unknown kind");
  has(kHead + R"({"client": "a", "arrivals": {"kind": "closed"}, "kernels": [{"us": 0}]})", "not from 0.001");
  has(kHead + R"({"client": "a", "arrivals": {"kind": "closed"}, "kernels": []})", "must be a list");
  // The shim would see such a client idle in between.
  has(kHead + R"({"client": "a", "arrivals": {"kind": "closed"}, "kernels": [{"us": 1, "launch_us": 201}]})", "to 200");
  has(kHead + R"({"client": "a", "repeat": 2, "arrivals": {"kind": "given"}})", "kernels are in each request");
  has(R"({"workload": "t", "seconds": 1, "switch_us": 100})", "\"switch_us\" needs \"slice_us\"");
  has(kHead + R"({"request": "a", "at_ms": 1, "kernels": [{"us": 1}]})", "there is no client \"a\"");
  has(R"({"client": "a"})", "must come first");
}

TEST_CASE("settings are set by name, within their limits") {
  Parameters parameters;
  CHECK(Set(parameters, "window_us", 123));
  CHECK(parameters.settings.window_us == 123);
  CHECK(Set(parameters, "wake_us", 7));
  CHECK(parameters.wake_us == 7);
  CHECK(Set(parameters, "time_slices", 1));
  CHECK(parameters.settings.time_slices);
  CHECK_FALSE(Set(parameters, "turn_ms", 0));
  CHECK_FALSE(Set(parameters, "windows_us", 1));
}
