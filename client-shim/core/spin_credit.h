// How long a thread spins at a shut gate before it sleeps there. A thread that sleeps needs up to 300 µs until it goes
// on, and misses openings that are shorter; programs that are bound by their host lose far more than the time for which
// they are held (docs/explanation/performance.md). A thread may spin for as long as it has used a processor since its
// last hold, so it never takes more than twice what it needs itself, and at most for kMostNs. Pure arithmetic. Thread
// rule: one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xschedd::shim {

class SpinCredit {
 public:
  static constexpr std::uint64_t kMostNs = 10'000'000;
  // With fewer processors the important program may need the one on which a held thread would spin.
  static constexpr unsigned kFewestProcessors = 4;

  // A hold begins, and ends. `cpu_ns`: processor time that the thread has used since it began; 0: unknown. Begin
  // returns for how long it may spin.
  std::uint64_t Begin(std::uint64_t cpu_ns) {
    credit_ns_ = cpu_ns == 0 ? 0 : std::min(credit_ns_ + cpu_ns - std::min(cpu_ns, seen_ns_), kMostNs);
    seen_ns_ = cpu_ns;
    return credit_ns_;
  }
  void End(std::uint64_t cpu_ns) {
    credit_ns_ -= std::min(cpu_ns - std::min(cpu_ns, seen_ns_), credit_ns_);
    seen_ns_ = cpu_ns;
  }

 private:
  std::uint64_t credit_ns_ = 0;
  std::uint64_t seen_ns_ = 0;
};

}  // namespace xschedd::shim
