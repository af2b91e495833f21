// A client for tests of identity and quotas: on a connection of its own or on one that it was given, and then as told.
//   rights_client DIR|fd:N [hint=N] [group=G] [token=TEXT] [plain]
// Prints "welcome ID PRIORITY" or "ended STATUS TEXT", then does what stands on standard input, a line each, and says
// when it is done:
//   device ADDRESS   queue N   hints N   notice   busy   idle   held
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
