// How Slurm's plugin runs xschedctl: for a limited time, and without slurmstepd's environment and descriptors.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/catch.h"

extern "C" {
#include "tools/slurm/child.h"
}

namespace {

constexpr int kLongMs = 60'000;

struct Ran {
  int error;
  int status = 0;
  std::string text;
};

Ran RunFor(int limit_ms, std::vector<std::string> words, std::size_t size = 4096) {
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string path = "PATH=/usr/bin:/bin";
  const std::array<char*, 2> environment = {path.data(), nullptr};
  std::string text(size, 'x');
  Ran ran{};
  ran.error = child_run(arguments.data(), environment.data(), limit_ms, text.data(), size, &ran.status);
  ran.text = text.c_str();
  return ran;
}

Ran Shell(const std::string& script, int limit_ms = kLongMs) {
  return RunFor(limit_ms, {"/bin/sh", "-c", script});
}

}  // namespace

TEST_CASE("a child's output and status come back") {
  const Ran ran = Shell("echo out; echo err >&2; exit 3");
  CHECK(ran.error == 0);
  CHECK(ran.status == 3);
  CHECK(ran.text == "out\nerr\n");
  CHECK(Shell("kill -9 $$").status == 128 + SIGKILL);
}

TEST_CASE("a program that is not there is an error") {
  CHECK(RunFor(kLongMs, {"/nonexistent/program"}).error == ENOENT);
}

TEST_CASE("a child inherits only the given environment") {
  const int fd = ::open("/dev/null", O_RDONLY);
  REQUIRE(fd >= 0);
  ::setenv("XSCHEDD_TEST_SECRET", "1", 1);
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const Ran ran = Shell("env | grep -c SECRET; ls /proc/self/fd | wc -l; grep SigBlk /proc/self/status");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(fd);
  CHECK(ran.text == "0\n4\nSigBlk:\t0000000000000000\n");  // 0, 1, 2, and ls's own of the folder
}

TEST_CASE("a child that takes too long is killed with its own children, and its output is kept") {
  const Ran ran = Shell("echo before; sleep 1000 & echo $!; wait", 200);
  CHECK(ran.error == ETIMEDOUT);
  REQUIRE(ran.text.starts_with("before\n"));
  const pid_t started = std::stoi(ran.text.substr(std::strlen("before\n")));
  // It may be a zombie of the process that adopted it for a moment.
  const std::string state = Shell("cat /proc/" + std::to_string(started) + "/stat 2>/dev/null | cut -d ' ' -f 3").text;
  CHECK((state.empty() || state == "Z\n" || state == "X\n"));
}

TEST_CASE("a child ignores SIGTERM") {
  CHECK(Shell("kill -TERM $$; echo after").text == "after\n");
}

TEST_CASE("a child that closes its output and continues is killed, too") {
  CHECK(Shell("exec >/dev/null 2>&1; sleep 1000", 200).error == ETIMEDOUT);
}

TEST_CASE("output beyond the buffer is dropped, and does not block the child") {
  const Ran ran = RunFor(kLongMs, {"/bin/sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' y"}, 16);
  CHECK(ran.error == 0);
  CHECK(ran.text == std::string(15, 'y'));
}
