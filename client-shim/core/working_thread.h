// A thread that has used its own default stream. Gives it a number, unique in the process, and reports its end to the
// client, because the stream ends with it. Thread rule: thread-local.
#pragma once

#include <atomic>
#include <cstdint>

#include "client-shim/core/client.h"

namespace xschedd::shim {

class WorkingThread {
 public:
  explicit WorkingThread(Client* client) : client_(client), number_(Next()) {}
  ~WorkingThread() { client_->ThreadEnded(number_); }
  WorkingThread(const WorkingThread&) = delete;
  WorkingThread& operator=(const WorkingThread&) = delete;
  std::uint64_t Number() const { return number_; }

 private:
  static std::uint64_t Next() {
    static std::atomic<std::uint64_t> last{0};
    // relaxed: only the numbers differ.
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  Client* const client_;
  const std::uint64_t number_;
};

}  // namespace xschedd::shim
