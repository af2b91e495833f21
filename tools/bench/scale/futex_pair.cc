#include "tools/bench/scale/futex_pair.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <stdexcept>

#include "common/clock.h"

namespace xschedd::bench {

struct FutexPair::Shared {
  std::atomic<std::uint32_t> ping;
  std::atomic<std::uint32_t> pong;
  std::atomic<std::uint32_t> measured;
  std::atomic<std::uint32_t> forgotten;  // the first so many do not count
  std::atomic<std::uint64_t> ns[kSamples];
};

namespace {

void AwaitValue(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  for (std::uint32_t seen = word.load(); seen != value; seen = word.load())
    ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

void Publish(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  word = value;
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

FutexPair::FutexPair(std::uint32_t interval_us) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for the futex pair");
  shared_ = new (memory) Shared{};
  answering_ = ::fork();
  if (answering_ == 0) Answer();
  asking_ = ::fork();
  if (asking_ == 0) Ask(interval_us);
  if (answering_ < 0 || asking_ < 0) throw std::runtime_error("cannot fork the futex pair");
}

FutexPair::~FutexPair() {
  for (const pid_t child : {asking_, answering_}) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  ::munmap(shared_, sizeof(Shared));
}

void FutexPair::Answer() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (std::uint32_t round = 1;; ++round) {
    AwaitValue(shared_->ping, round);
    Publish(shared_->pong, round);
  }
}

void FutexPair::Ask(std::uint32_t interval_us) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (std::uint32_t round = 1;; ++round) {
    ::usleep(interval_us);
    const std::uint64_t start = MonotonicNs();
    Publish(shared_->ping, round);
    AwaitValue(shared_->pong, round);
    shared_->ns[(round - 1) % kSamples] = MonotonicNs() - start;
    shared_->measured = round;
  }
}

void FutexPair::Restart() {
  shared_->forgotten = shared_->measured.load();
}

std::vector<double> FutexPair::Samples() const {
  const std::uint32_t end = shared_->measured;
  const std::uint32_t begin = std::max(shared_->forgotten.load(), end > kSamples ? end - kSamples : 0);
  std::vector<double> samples;
  for (std::uint32_t i = begin; i < end; ++i)
    samples.push_back(static_cast<double>(shared_->ns[i % kSamples]));
  return samples;
}

}  // namespace xschedd::bench
