// fake_client: prints "connected" once connected, and stays so until it is ended. For tests that need a client and no
// GPU.
#include <unistd.h>

#include <cstdio>

#include "common/command_syntax.h"
#include "tools/bench/gate/fake_client.h"

int main(int argc, char** argv) {
  std::string runtime_dir;
  std::string group;
  int priority = 0;
  bool busy = false;
  xschedd::CommandSyntax syntax("A client without a GPU.");
  syntax.AddOption("--runtime-dir", runtime_dir, "folder of the daemon's sockets");
  syntax.AddOption("--priority", priority, "hint");
  syntax.AddOption("--group", group, "name of a group");
  syntax.AddFlag("--busy", busy, "reports busy all the time");
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;
  const auto client = xschedd::bench::FakeClient::Connect(runtime_dir, priority, group, {});
  if (!client) {
    std::fprintf(stderr, "fake_client: %s\n", client.error().Line().c_str());
    return 1;
  }
  if (busy) (*client)->ReportBusy(true);
  std::printf("connected\n");
  std::fflush(stdout);
  pause();
  return 0;
}
