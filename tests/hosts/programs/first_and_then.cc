// A process starts or becomes another in several ways; each process that works does the checked work of work.h.
//
//   first_and_then LAUNCHES MICROS WAY
//     plain           works
//     exec            works, then becomes `plain` by exec
//     exec-without    becomes `plain` with LD_PRELOAD unset by a wrapper
//     fork-first      a child works; the parent never used HIP
//     fork-after      works; then a child exits, as a child that only computes does
//     daemon          forks twice with a session of its own between, then works
//     spawn           posix_spawn of `plain`; the parent never used HIP
//     spawn-after     works, then posix_spawn of `plain`
// Of two workers the first works until the daemon knows it, the second until it shall end. Thread rule: one thread.
#include <spawn.h>
#include <sys/wait.h>

#include <string>
#include <string_view>

#include "work.h"

namespace {

char** g_arguments = nullptr;

// $HOST_LOAD_LATER: libraries, separated by colons, that are loaded into the global scope during the work.
void LoadLater() {
  const char* names = std::getenv("HOST_LOAD_LATER");
  for (std::string rest = names != nullptr ? names : ""; !rest.empty();) {
    const std::string name = rest.substr(0, rest.find(':'));
    rest.erase(0, name.size() + 1);
    if (dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) continue;
    std::fprintf(stderr, "%s\n", dlerror());
    std::_Exit(1);
  }
}

int WorkAll(bool until_told) {
  hosts::Work work;
  const unsigned long micros = std::strtoul(g_arguments[2], nullptr, 10);
  work.Launch(static_cast<unsigned>(std::strtoul(g_arguments[1], nullptr, 10)), micros);
  if (until_told) LoadLater();
  until_told ? work.LaunchUntilTold(micros) : work.LaunchUntilConnected(micros);
  return work.Verdict();
}

int StatusOf(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 99;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

int Spawn() {
  char plain[] = "plain";
  char* const arguments[] = {g_arguments[0], g_arguments[1], g_arguments[2], plain, nullptr};
  pid_t child = -1;
  return posix_spawn(&child, g_arguments[0], nullptr, nullptr, arguments, environ) == 0 ? StatusOf(child) : 97;
}

int Become() {
  execl(g_arguments[0], g_arguments[0], g_arguments[1], g_arguments[2], "plain", nullptr);
  return 97;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  g_arguments = argv;
  const std::string_view way = argv[3];
  if (way == "plain") return WorkAll(true);
  if (way == "exec") {
    const int status = WorkAll(false);
    return status != 0 ? status : Become();
  }
  if (way == "exec-without") {
    unsetenv("LD_PRELOAD");
    return Become();
  }
  if (way == "fork-first" || way == "daemon") {
    const pid_t child = fork();
    if (child != 0) return StatusOf(child);
    if (way == "fork-first") return WorkAll(true);
    setsid();
    const pid_t second = fork();
    return second != 0 ? StatusOf(second) : WorkAll(true);
  }
  if (way == "fork-after") {
    hosts::Work work;
    work.Launch(10, 1000);
    const pid_t child = fork();
    if (child == 0) _exit(5);
    if (StatusOf(child) != 5) return 96;
    work.Launch(10, 1000);
    work.LaunchUntilTold(1000);
    return work.Verdict();
  }
  if (way == "spawn") return Spawn();
  if (way == "spawn-after") {
    const int status = WorkAll(false);
    return status != 0 ? status : Spawn();
  }
  return 2;
}
