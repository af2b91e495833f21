// fake_client: stays connected until it is ended; says "connected" when it is. For tests that need a client and no GPU.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/bench/gate/fake_client.h"

int main(int argc, char** argv) {
  std::string runtime_dir;
  std::string group;
  int priority = 0;
  bool busy = false;
  CLI::App app("A client without a GPU.");
  app.add_option("--runtime-dir", runtime_dir, "folder of the daemon's sockets");
  app.add_option("--priority", priority, "hint");
  app.add_option("--group", group, "name of a group");
  app.add_flag("--busy", busy, "says that it is busy all the time");
  CLI11_PARSE(app, argc, argv);
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
