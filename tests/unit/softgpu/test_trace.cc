// The trace: one JSON object per line, complete when it is written, valid whatever a kernel's name is.
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.h"
#include "tools/softgpu/model/trace.h"

TEST_CASE("each record is one line of JSON") {
  char folder[] = "/tmp/softgpu-trace-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string prefix = std::string(folder) + "/t";
  const std::string path = prefix + "." + std::to_string(getpid()) + ".jsonl";
  softgpu::Trace trace;
  trace.open(prefix);
  trace.write({"kernel", "_Z4gemmPf", 1, 2, 40, "high", 10, 20, 30});
  trace.write({"kernel", "odd\"name\\\n", 0, 0, 1, nullptr, 1, 2, 3});
  trace.write({"kernel", std::string(10'000, 'x').c_str(), 0, 0, 1, nullptr, 1, 2, 3});
  std::ifstream file(path);
  std::string line;
  REQUIRE(std::getline(file, line));
  const nlohmann::json first = nlohmann::json::parse(line);
  CHECK(first["pid"] == getpid());
  CHECK(first["device"] == 1);
  CHECK(first["queue"] == 2);
  CHECK(first["name"] == "_Z4gemmPf");
  CHECK(first["cus"] == 40);
  CHECK(first["arrival_ns"] == 10);
  CHECK(first["start_ns"] == 20);
  CHECK(first["end_ns"] == 30);
  REQUIRE(std::getline(file, line));
  CHECK(nlohmann::json::parse(line)["name"] == "odd?name??");
  REQUIRE(std::getline(file, line));
  CHECK(nlohmann::json::accept(line));
  unlink(path.c_str());
  rmdir(folder);
}

TEST_CASE("without a prefix nothing is written") {
  softgpu::Trace trace;
  trace.open("");
  trace.write({"kernel", "k", 0, 0, 1, nullptr, 1, 2, 3});
}
