// The real xschedd with its own folder, for one test. Thread rule: the test's thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin.grpc.pb.h"

namespace xschedd::test {

// Runs a program; stdout and stderr go to `output`, if given.
pid_t Spawn(const std::vector<std::string>& arguments, const std::string& output = {});
// The same with listening sockets as systemd gives them: name and path.
pid_t SpawnWithSockets(const std::vector<std::string>& arguments,
                       const std::vector<std::pair<std::string, std::string>>& sockets, const std::string& output);
// Waits for its end; the exit code, or -signal.
int Reap(pid_t pid);
std::string ReadFile(const std::string& path);

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& Path() const { return path_; }

 private:
  std::string path_;
};

class DaemonProcess {
 public:
  // `config`: text of a configuration file; empty: none.
  explicit DaemonProcess(const std::string& config = {}, const std::vector<std::string>& arguments = {});
  // Stops the daemon, unless it was killed, and fails the test if it does not exit with 0.
  ~DaemonProcess();

  const std::string& Dir() const { return folder_.Path(); }
  pid_t Pid() const { return pid_; }
  std::string Log() const;
  void WriteConfig(const std::string& text) const;
  void Signal(int signal);
  // Sends SIGTERM and returns the exit code; a daemon that does not end is killed.
  int Stop();
  static std::string Binary();

  v1::Admin::Stub& Admin() { return *admin_; }

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  bool killed_ = false;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

// Polls `condition` for up to half a minute; returns whether it became true.
template <typename Condition>
bool Eventually(Condition condition);

void ShortSleep();
bool DeadlineHasPassed(int looks);

template <typename Condition>
bool Eventually(Condition condition) {
  for (int looks = 0; !DeadlineHasPassed(looks); ++looks) {
    if (condition()) return true;
    ShortSleep();
  }
  return condition();
}

}  // namespace xschedd::test
