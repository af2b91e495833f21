#include "tools/xschedctl/table.h"

#include "tests/catch.h"

namespace xschedd::ctl {
namespace {

Table SampleTable() {
  Table table({{.header = "PID", .right = true},
               {.header = "GROUP", .rank = 2},
               {.header = "HELD", .right = true, .rank = 1},
               {.header = "COMMAND", .flexible = true}});
  table.Add({"4711", "training", "1.50 ms", "python3 train.py --epochs 100"});
  table.Add({"12", "-", "0 s", "vllm"});
  return table;
}

}  // namespace

TEST_CASE("a table in a pipe is complete") {
  CHECK(SampleTable().Render({}) ==
        " PID  GROUP        HELD  COMMAND\n"
        "4711  training  1.50 ms  python3 train.py --epochs 100\n"
        "  12  -             0 s  vllm\n");
  CHECK(SampleTable().Render({.header = false}).substr(0, 4) == "4711");
}

TEST_CASE("a narrow terminal first costs the flexible column, then the least important ones") {
  CHECK(SampleTable().Render({.width = 45, .header = false}) ==
        "4711  training  1.50 ms  python3 train.py --+\n"
        "  12  -             0 s  vllm\n");
  CHECK(SampleTable().Render({.width = 30, .header = false}) ==
        "4711  1.50 ms  python3 train.+\n"
        "  12      0 s  vllm\n");
  CHECK(SampleTable().Shows("GROUP", {.width = 45}));
  CHECK_FALSE(SampleTable().Shows("GROUP", {.width = 30}));
  CHECK(SampleTable().Shows("HELD", {.width = 30}));
  CHECK_FALSE(SampleTable().Shows("NONE", {}));
  // Columns without a rank stay, however narrow the terminal is.
  CHECK(SampleTable().Render({.width = 5, .header = false}) ==
        "4711  python3 tra+\n"
        "  12  vllm\n");
}

TEST_CASE("no line is wider than the terminal, as long as columns can be dropped") {
  for (std::size_t width = 18; width < 80; ++width) {
    const std::string text = SampleTable().Render({.width = width});
    std::size_t start = 0;
    while (start < text.size()) {
      const std::size_t end = text.find('\n', start);
      CHECK(end - start <= width);
      start = end + 1;
    }
  }
}

TEST_CASE("a command line cannot move the cursor") {
  CHECK(OneLine("a\x1b[2Jb\n\x7f") == "a?[2Jb??");
  CHECK(OneLine("\xc2\x9b"
                "31m") == "?31m");
  CHECK(OneLine("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
}

TEST_CASE("width counts characters, not bytes") {
  CHECK(DisplayWidth("gr\xc3\xbc\xc3\x9f") == 4);
}

}  // namespace xschedd::ctl
