// Errors that keep the daemon from starting: one line with cause and remedy, exit code 1, nothing left behind.
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "tests/catch.h"
#include "tests/integration/daemon/daemon_process.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

struct Outcome {
  int code = 0;
  std::string said;
};

// Starts the daemon in `folder`, where it must fail.
Outcome Start(const TemporaryFolder& folder, const std::vector<std::string>& prefix = {}) {
  const std::string output = folder.Path() + "/output";
  std::vector<std::string> command = prefix;
  command.insert(command.end(), {DaemonProcess::Binary(), "--runtime-dir", folder.Path()});
  const int code = Reap(Spawn(command, output));
  return {code, ReadFile(output)};
}

void CheckOneLine(const Outcome& outcome, const std::string& part) {
  INFO(outcome.said);
  CHECK(outcome.code == 1);
  CHECK(outcome.said.find("xschedd: ") == 0);
  CHECK(outcome.said.find(part) != std::string::npos);
  CHECK(outcome.said.find('\n') == outcome.said.size() - 1);
}

}  // namespace

TEST_CASE("a file in the place of a socket stays") {
  const TemporaryFolder folder;
  for (const char* name : {"/client.sock", "/admin.sock"}) {
    const std::string path = folder.Path() + name;
    std::ofstream(path) << "precious";
    CheckOneLine(Start(folder), path + " exists and is not a socket; move it away");
    CHECK(ReadFile(path) == "precious");
    std::filesystem::remove(path);
    std::filesystem::remove(folder.Path() + "/client.sock");
    std::filesystem::remove(folder.Path() + "/output");
  }
}

TEST_CASE("a lock that cannot be taken is reported") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.Path() + "/lock");
  CheckOneLine(Start(folder), "cannot open " + folder.Path() + "/lock");
}

TEST_CASE("with too few descriptors it says so, instead of failing inside a library") {
  for (const int limit : {6, 9, 12, 14, 16, 18, 40}) {
    const TemporaryFolder folder;
    INFO(limit);
    const std::string both = std::to_string(limit) + ":" + std::to_string(limit);
    CheckOneLine(Start(folder, {"/usr/bin/prlimit", "--nofile=" + both}), "LimitNOFILE");
  }
}

TEST_CASE("sockets from systemd must be of the right kind") {
  const std::vector<std::vector<std::pair<std::string, std::string>>> wrong = {
      {{"client", "/c"}},
      {{"admin", "/a"}},
      {{"client", "/c"}, {"client", "/d"}},
  };
  for (const auto& given : wrong) {
    const TemporaryFolder inner;
    std::vector<std::pair<std::string, std::string>> sockets;
    for (const auto& [name, path] : given)
      sockets.emplace_back(name, inner.Path() + path);
    const std::string output = inner.Path() + "/output";
    const pid_t daemon = SpawnWithSockets({DaemonProcess::Binary(), "--runtime-dir", inner.Path()}, sockets, output);
    CheckOneLine({Reap(daemon), ReadFile(output)}, "systemd passed");
  }
}

TEST_CASE("descriptors that are not listening sockets, and invalid numbers, are refused") {
  const struct {
    const char* environment;
    const char* part;
  } cases[] = {{"exec 3</dev/null 4</dev/null; LISTEN_FDS=2 LISTEN_FDNAMES=client:admin", "unexpected socket"},
               {"LISTEN_FDS=many", "cannot take the descriptors that systemd passed"}};
  for (const auto& [environment, part] : cases) {
    const TemporaryFolder folder;
    const std::string output = folder.Path() + "/output";
    const std::string script =
        std::string("export LISTEN_PID=$$; ") + environment + " exec \"$0\" --runtime-dir \"$1\"";
    const pid_t daemon = Spawn({"/bin/sh", "-c", script, DaemonProcess::Binary(), folder.Path()}, output);
    CheckOneLine({Reap(daemon), ReadFile(output)}, part);
  }
}
