// Reads command lines on a thread of its own: /proc/<pid>/cmdline is the process's own memory, and the process can make
// a reader wait as long as it likes (FUSE, userfaultfd). Then only other command lines wait, never the daemon.
// Thread rule: Read from one thread; `done` is called on the reader's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/unique_fd.h"

namespace xschedd {

// The beginning of /proc/<pid>/cmdline as text: words with blanks between them, cleaned (process.h).
std::string CommandText(std::string_view words);

class CommandReader {
 public:
  using Done = std::function<void(std::string command)>;

  CommandReader();
  // Does not wait for a read that hangs: the thread is left to the end of the process.
  ~CommandReader();

  // `pidfd` (a duplicate is taken) protects against a reused pid. When too many wait already, the command stays
  // unknown.
  void Read(pid_t pid, int pidfd, Done done);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace xschedd
