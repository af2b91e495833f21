// Reads command lines on a thread of its own. /proc/<pid>/cmdline is the process's own memory, so the process can make
// a reader wait as long as it likes (FUSE, userfaultfd); then only other command lines wait, never the daemon. Thread
// rule: Read from one thread; `done` runs on the reader's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/unique_fd.h"

namespace xschedd {

// The beginning of /proc/<pid>/cmdline as text: words with spaces between them, cleaned (CleanText).
std::string CommandText(std::string_view words);

class CommandReader {
 public:
  using Done = std::function<void(std::string command)>;

  CommandReader();
  // Does not wait for a read that hangs: its thread stays until the process ends.
  ~CommandReader();

  // `pidfd` (which is duplicated) protects against a reused pid. If too many reads are waiting already, `done` is never
  // called.
  void Read(pid_t pid, int pidfd, Done done);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace xschedd
