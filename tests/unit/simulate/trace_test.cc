// A workload from the software GPU's trace.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/simulate/workloads.h"
#include "tools/bench/simulate/from_trace.h"

using namespace xschedd::simulate;

namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "xschedd-trace-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string Prefix() const { return (path_ / "t").string(); }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }

 private:
  std::filesystem::path path_;
};

std::string Line(const char* kind, int queue, std::uint64_t arrival_us, std::uint64_t start_us, std::uint64_t end_us) {
  return "{\"pid\":7,\"device\":0,\"queue\":" + std::to_string(queue) + ",\"kind\":\"" + kind +
         "\",\"name\":\"k\",\"arrival_ns\":" + std::to_string(1000 * arrival_us) +
         ",\"start_ns\":" + std::to_string(1000 * start_us) + ",\"end_ns\":" + std::to_string(1000 * end_us) +
         ",\"cus\":80}\n";
}

}  // namespace

TEST_CASE("dispatches become requests, pauses between them arrivals") {
  const Folder folder;
  folder.Write("t.7.jsonl", Line("copy", 0, 1, 2, 3) + Line("kernel", 0, 1000, 1000, 2000) +
                                Line("kernel", 1, 1000, 2000, 3000) + Line("blit", 0, 2000, 3000, 3500) +
                                Line("kernel", 0, 9000, 9500, 10'500) + "{\"pid\":7,\"dev");
  folder.Write("t.8.jsonl", Line("kernel", 0, 500, 500, 600));
  folder.Write("t.8.jsonl.old", "no JSON");
  folder.Write("other.9.jsonl", "no JSON");

  const xschedd::Result<Workload> open = FromTrace(folder.Prefix(), {});
  REQUIRE(open);
  CHECK(open->devices == 1);
  CHECK(open->length_ns == 10'000'000);
  REQUIRE(open->clients.size() == 2);
  const ClientSpec& client = open->clients[0];
  CHECK(client.name == "pid-7");
  CHECK(client.streams == 2);
  REQUIRE(client.given.size() == 2);
  CHECK(client.given[0].at_ns == 500'000);  // since the first arrival of all
  CHECK(client.given[1].at_ns == 8'500'000);
  const Program& first = client.programs[client.given[0].program];
  REQUIRE(first.size() == 2);
  CHECK(first[0].kernel_ns == 1'000'000);
  CHECK(first[0].count == 2);
  CHECK(first[1].kernel_ns == 500'000);

  const xschedd::Result<Workload> closed = FromTrace(folder.Prefix(), {.is_closed = true});
  REQUIRE(closed);
  CHECK(closed->clients[0].given[0].at_ns == 500'000);
  CHECK(closed->clients[0].given[1].at_ns == 5'500'000);  // from 3.5 ms to 9 ms

  // Dispatches 6 ms apart are one request if a pause must be longer.
  const xschedd::Result<Workload> whole = FromTrace(folder.Prefix(), {.gap_ns = 6'000'000});
  REQUIRE(whole);
  CHECK(whole->clients[0].given.size() == 1);
}

TEST_CASE("a file that is missing or is not a trace is reported") {
  const Folder folder;
  CHECK_FALSE(FromTrace(folder.Prefix(), {}));
  folder.Write("t.7.jsonl", "{\"pid\": 7}\n");
  const xschedd::Result<Workload> workload = FromTrace(folder.Prefix(), {});
  REQUIRE_FALSE(workload);
  CHECK(workload.error().what.find("t.7.jsonl:1: ") != std::string::npos);
}
