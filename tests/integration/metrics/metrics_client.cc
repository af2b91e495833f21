// A client whose numbers are known: it writes its ledger as it is told, so that a test knows what the metrics must say.
//   metrics_client DIR [hint=N]
// Prints "welcome ID PRIORITY", then does what stands on standard input, a line each, and says "done":
//   device ADDRESS   busy   idle   tracked (waits until it is)   held (waits until it is)   open (waits until it is)
//   launches N   completions N   passed N   gpu_us N   in_flight N
// The numbers are added to slot 0 of its ledger, but for in_flight. Ends at the end of standard input.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/integration/daemon/fake_shim.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

void Say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

template <typename Condition>
void WaitFor(const Condition& condition) {
  while (!condition())
    ::usleep(500);
}

void Obey(FakeShim& shim) {
  std::string line;
  std::uint32_t slots = 0;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb;
    std::string object;
    words >> verb >> object;
    const auto number = std::strtoull(object.c_str(), nullptr, 10);
    abi::LedgerDevice& ledger = shim.RawLedger()->devices[0];
    if (verb == "device") shim.Attach(slots++, object);
    if (verb == "busy" || verb == "idle") shim.Report(0, verb == "busy");
    if (verb == "tracked") WaitFor([&] { return shim.IsTracked(0); });
    if (verb == "held") WaitFor([&] { return shim.IsHeld(0); });
    if (verb == "open") WaitFor([&] { return !shim.IsHeld(0); });
    if (verb == "launches") ledger.submitted += number;
    if (verb == "completions") ledger.completed += number;
    if (verb == "passed") ledger.passthrough += number;
    if (verb == "gpu_us") ledger.gpu_time_ns += number * 1000;
    if (verb == "in_flight") ledger.in_flight = static_cast<std::uint32_t>(number);
    Say("done");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  FakeShim::Options options;
  const std::string hint = argc > 2 ? argv[2] : "";
  if (hint.starts_with("hint=")) options.hint = std::atoi(hint.c_str() + 5);
  FakeShim shim(argv[1], options);
  if (!shim.HasSession()) return 3;
  Say("welcome " + std::to_string(shim.Welcome().client_id()) + " " +
      std::to_string(shim.Welcome().effective_priority()));
  Obey(shim);
  return 0;
}
