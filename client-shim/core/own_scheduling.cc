#include "client-shim/core/own_scheduling.h"

#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace xschedd::shim {
namespace {

// A bit for each processor, as many as Linux has on x86-64.
using Processors = std::array<unsigned long, 8192 / (8 * sizeof(unsigned long))>;

// How many threads are examined: a process with more has hardly bound each of them to other processors.
constexpr int kMaxThreads = 512;

void AddAffinityOf(int thread, Processors* processors) {
  Processors its{};
  if (::syscall(SYS_sched_getaffinity, thread, sizeof its, its.data()) <= 0) return;
  for (std::size_t i = 0; i < its.size(); ++i)
    (*processors)[i] |= its[i];
}

}  // namespace

void ResetInheritedScheduling() {
  // SCHED_RESET_ON_FORK is kept, because a thread without privilege cannot clear it (sched(7)).
  const int policy = ::sched_getscheduler(0);
  if (policy >= 0 && (policy & ~SCHED_RESET_ON_FORK) != SCHED_OTHER) {
    const sched_param none{};
    (void)::sched_setscheduler(0, SCHED_OTHER | (policy & SCHED_RESET_ON_FORK), &none);
  }

  Processors own{};
  AddAffinityOf(0, &own);
  Processors all = own;
  if (DIR* const threads = ::opendir("/proc/self/task")) {
    for (int i = 0; i < kMaxThreads; ++i) {
      const dirent* const entry = ::readdir(threads);
      if (entry == nullptr) break;
      const int thread = std::atoi(entry->d_name);
      if (thread > 0) AddAffinityOf(thread, &all);
    }
    ::closedir(threads);
  }
  if (all != own) (void)::syscall(SYS_sched_setaffinity, 0, sizeof all, all.data());
}

}  // namespace xschedd::shim
