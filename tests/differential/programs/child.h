// A process of its own for a part of a program that ends it, or that needs a second client: the program started again
// with one more argument. Thread rule: main thread.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <string>
#include <utility>

#include "tests/differential/transcript.h"

namespace differential {

// `descriptors`: pairs of a descriptor of this process and its number in the child.
inline pid_t StartChild(const Run& run, const std::string& part,
                        std::initializer_list<std::pair<int, int>> descriptors = {}) {
  const std::string seed = std::to_string(run.seed), devices = std::to_string(run.devices),
                    rounds = std::to_string(run.rounds);
  const pid_t pid = vfork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const auto& [ours, theirs] : descriptors)
      dup2(ours, theirs);
    execl("/proc/self/exe", "child", seed.c_str(), devices.c_str(), rounds.c_str(), part.c_str(), nullptr);
    _exit(127);
  }
  return pid;
}

// How it ended, in words: "exit 0", "signal 6".
inline std::string WaitForChild(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return "lost";
  if (WIFEXITED(status)) return "exit " + std::to_string(WEXITSTATUS(status));
  return "signal " + std::to_string(WTERMSIG(status));
}

}  // namespace differential
