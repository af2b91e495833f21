// A barrier on the host for the ranks of a job: a counter in a shared file. Thread rule: one thread of each process.
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>

#include "tools/bench/hip/tenant.h"

namespace tenant {

class Barrier {
 public:
  // `path`: a file for these ranks only, empty or missing at the start. Empty path: no barrier.
  Barrier(const std::string& path, std::uint32_t ranks) : ranks_(ranks) {
    if (path.empty()) return;
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* const memory = file >= 0 && ftruncate(file, sizeof(Word)) == 0
                             ? mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                             : MAP_FAILED;
    if (memory == MAP_FAILED) {
      std::fprintf(stderr, "%s: cannot share %s: %s; give another --barrier\n", program_invocation_short_name,
                   path.c_str(), std::strerror(errno));
      std::exit(1);
    }
    close(file);
    arrived_ = static_cast<Word*>(memory);  // zero: no rank has arrived
  }
  ~Barrier() {
    if (arrived_ != nullptr) munmap(arrived_, sizeof(Word));
  }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  // Waits until all ranks have come as often as this one, or the program is to end.
  void Meet() {
    if (arrived_ == nullptr) return;
    ++rounds_;
    const std::uint32_t all = rounds_ * ranks_;
    if (arrived_->fetch_add(1) + 1 == all) syscall(SYS_futex, arrived_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    for (std::uint32_t now = arrived_->load(); static_cast<std::int32_t>(now - all) < 0 && !IsStopping();
         now = arrived_->load()) {
      // With a limit, because another rank may have ended.
      const timespec patience{0, 100'000'000};
      syscall(SYS_futex, arrived_, FUTEX_WAIT, now, &patience, nullptr, 0);
    }
  }

 private:
  using Word = std::atomic<std::uint32_t>;

  std::uint32_t ranks_;
  std::uint32_t rounds_ = 0;
  Word* arrived_ = nullptr;
};

}  // namespace tenant
