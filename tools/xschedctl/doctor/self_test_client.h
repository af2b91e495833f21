// One client of the self test, a process under the shim (self_test/client.c), and the commands sent to it. Thread rule:
// main thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "common/unique_fd.h"

namespace xschedd::ctl {

struct SelfTestPlace {
  std::string shim;         // of the clients
  std::string runtime_dir;  // of the daemon
  std::string folder;       // of the self test's programs
  std::string device;       // PCI address of the simulated one
};

class SelfTestClient {
 public:
  // Starts it; IsRunning says whether that worked.
  SelfTestClient(const SelfTestPlace& place, int priority);
  // Kills it where it has not ended.
  ~SelfTestClient();
  SelfTestClient(const SelfTestClient&) = delete;
  SelfTestClient& operator=(const SelfTestClient&) = delete;

  bool IsRunning() const { return pid_ > 0; }
  std::uint64_t Pid() const { return static_cast<std::uint64_t>(pid_); }
  // The answer to "attach", "work", "rest", "count"; nullopt: none came within some seconds.
  std::optional<std::uint64_t> Ask(const std::string& word);
  // Closes its input, which ends it. Its wait status, or nullopt if it did not end within some seconds.
  std::optional<int> End();

 private:
  pid_t pid_ = 0;
  UniqueFd in_;
  UniqueFd out_;
};

// The folder with both programs: beside this program in a build tree, else where it was installed. Empty: not found.
std::string SelfTestFolder(const std::string& exe, const std::string& library_dir);

}  // namespace xschedd::ctl
