// xschedctl: the command-line tool with which administrators and users control xschedd. See
// docs/reference/xschedctl.md.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "tools/xschedctl/colour.h"
#include "tools/xschedctl/command_line.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

namespace {

int Main(int argc, char** argv) {
  CommandLine line;
  const auto action = line.Parse({argv + 1, argv + argc});
  const Outcome<ExitCode> outcome = action ? (*action)() : tl::unexpected<Failure>(action.error());
  if (outcome) return static_cast<int>(*outcome);
  fmt::print(stderr, "{} {}\n", Painted("xschedctl:", Colour::kRed, HasColour(STDERR_FILENO)),
             OneLine(outcome.error().error.Line()));
  return static_cast<int>(outcome.error().code);
}

}  // namespace
}  // namespace xschedd::ctl

int main(int argc, char** argv) {
  try {
    return xschedd::ctl::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "xschedctl: unexpected error: {}\n", error.what());
    return static_cast<int>(xschedd::ctl::ExitCode::kRefused);
  }
}
