// xschedctl's command line: any words, one per line. Commands run as far as the connection to the daemon, which does
// not exist. Properties: nothing is thrown; errors are reported in one line.
#include <unistd.h>

#include "daemon/config/duration.h"
#include "tests/fuzz/input.h"
#include "tools/xschedctl/command_line.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
void Print(const std::string&) {}
}  // namespace xschedd::ctl

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xschedd;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  for (const std::string& word : words) {
    (void)ParseMicroseconds(word);
    (void)ParseMilliseconds(word);
    (void)ParseSeconds(word);
    (void)ctl::ParseWeight(word);
    (void)ctl::ParseNumber(word, "pid", 1000);
  }
  ctl::CommandLine line;
  const auto action = line.Parse(words);
  if (!action) {
    FUZZ_CHECK(fuzz::IsShowable(OneLine(action.error().error.Line())));
    return 0;
  }
  // The other commands run a program, write a file, or inspect this machine.
  const bool has_other_effects = line.Chosen().empty() || line.Chosen() == "run" || line.Chosen() == "trace" ||
                                 line.Chosen() == "doctor" || line.Chosen() == "check" || line.Chosen() == "show";
  if (has_other_effects) return 0;
  line.Global().runtime_dir = "/nonexistent";
  const auto outcome = (*action)();
  FUZZ_CHECK(outcome || !outcome.error().error.Line().empty());
  return 0;
}
