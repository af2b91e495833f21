// A client that obeys commands, for tests in Python: on a connection of its own, or on one that it was given.
//   scripted_client DIR|fd:N [hint=N] [group=G] [token=TEXT] [plain]
// Prints "welcome ID PRIORITY" or "ended STATUS TEXT", then executes the commands on standard input, one a line, and
// answers each with one line, "done" unless noted:
//   device ADDRESS   queue N   hints N   busy   idle   notice (answers with the next one)   held (answers yes or no)
//   await tracked    await held    await open
//   launches N   completions N   passed N   gpu_us N   refused N   added to slot 0 of its ledger
//   in_flight N   memory N   set there      limit (answers with the limit of memory on slot 0, bytes)
// Ends at the end of standard input.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
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

std::string Status(const grpc::Status& status) {
  return std::to_string(static_cast<int>(status.error_code())) + " " + status.error_message();
}

void Obey(FakeShim& shim) {
  std::string line;
  std::uint32_t devices = 0;
  std::uint64_t queues = 0;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb;
    std::string object;
    words >> verb >> object;
    const auto number = std::strtoull(object.c_str(), nullptr, 10);
    const auto ledger = [&shim]() -> abi::LedgerDevice& {
      return shim.RawLedger()->devices[0];
    };  // none without a preamble
    if (verb == "await" && object == "tracked") WaitFor([&] { return shim.IsTracked(0); });
    if (verb == "await" && object == "held") WaitFor([&] { return shim.IsHeld(0); });
    if (verb == "await" && object == "open") WaitFor([&] { return !shim.IsHeld(0); });
    if (verb == "launches") ledger().submitted += number;
    if (verb == "completions") ledger().completed += number;
    if (verb == "passed") ledger().passthrough += number;
    if (verb == "gpu_us") ledger().gpu_time_ns += number * 1000;
    if (verb == "in_flight") ledger().in_flight = static_cast<std::uint32_t>(number);
    if (verb == "memory") shim.RawLedger()->memory[0].bytes = number;
    if (verb == "refused") shim.RawLedger()->memory[0].refused += number;
    if (verb == "device") shim.Attach(devices++, object);
    if (verb == "queue") {
      for (int i = std::atoi(object.c_str()); i > 0; --i)
        shim.CreateQueue(++queues);
    }
    if (verb == "hints") {
      v1::ClientMessage message;
      message.mutable_hint()->set_priority(-1);
      for (int i = std::atoi(object.c_str()); i > 0; --i)
        shim.Send(message);
    }
    if (verb == "busy" || verb == "idle") shim.Report(0, verb == "busy");
    if (verb == "held") {
      Say(shim.IsHeld(0) ? "yes" : "no");
    } else if (verb == "limit") {
      Say(std::to_string(shim.MemoryLimit(0)));
    } else if (verb == "notice") {
      Say("notice " + shim.NextNotice());
    } else {
      Say("done");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  FakeShim::Options options;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&word] { return word.substr(word.find('=') + 1); };
    if (word.starts_with("hint=")) options.hint = std::stoi(value());
    if (word.starts_with("group=")) options.group = value();
    if (word.starts_with("token=")) options.token = value();
    if (word == "plain") options.preamble = false;
  }
  const std::string where = argv[1];
  UniqueFd socket = where.starts_with("fd:") ? UniqueFd(std::stoi(where.substr(3))) : ConnectTo(where + "/client.sock");
  if (!socket.IsValid()) return 3;
  try {
    FakeShim shim(std::move(socket), options);
    if (!shim.HasSession()) {
      Say("ended " + Status(shim.Finish()));
      return 0;
    }
    Say("welcome " + std::to_string(shim.Welcome().client_id()) + " " +
        std::to_string(shim.Welcome().effective_priority()));
    Obey(shim);
  } catch (const std::exception& error) {
    Say(std::string("ended by ") + error.what());
  }
  return 0;
}
