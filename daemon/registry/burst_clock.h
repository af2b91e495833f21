// How long one tenant's bursts of work, from busy to idle, need: the time with an open gate, by the daemon's own clock.
// That holds all that a burst has to wait for once it may run (what others still have in flight, the wake-up of its
// thread, its own host work), and nothing that a client could lie about but by being slow.
// Thread rule: the daemon's one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xschedd {

class BurstClock {
 public:
  // A burst that had begun before it was seen is not `whole`: it says nothing of what is usual.
  void Begin(bool whole, std::uint64_t now_ns) {
    since_ns_ = now_ns;
    held_ns_ = 0;
    whole_ = whole;
  }
  // It was held for so long.
  void AddHeld(std::uint64_t ns) { held_ns_ += ns; }
  void End(std::uint64_t now_ns) {
    const std::uint64_t open = OpenNs(now_ns, 0);
    // More rather than less: who plans with it would rather begin too early. A longer burst counts at once, shorter
    // ones take a part of the difference away each.
    if (whole_) usual_ns_ = open >= usual_ns_ ? open : usual_ns_ - (usual_ns_ - open) / kFollow;
    Abandon();
  }
  // The burst is not followed to its end. What is usual stays known.
  void Abandon() {
    since_ns_ = 0;
    whole_ = false;
  }

  // Of the present burst; 0: there is none. `held_since_ns`: it is held at the moment, since then; 0: it is not.
  std::uint64_t OpenNs(std::uint64_t now_ns, std::uint64_t held_since_ns) const {
    if (since_ns_ == 0) return 0;
    const std::uint64_t until = held_since_ns != 0 ? held_since_ns : now_ns;
    const std::uint64_t all = until - std::min(until, since_ns_);
    return all - std::min(all, held_ns_);
  }
  std::uint64_t UsualNs() const { return usual_ns_; }  // 0: not known

 private:
  static constexpr std::uint64_t kFollow = 64;

  std::uint64_t since_ns_ = 0;  // 0: no burst
  std::uint64_t held_ns_ = 0;   // of the present burst
  std::uint64_t usual_ns_ = 0;
  bool whole_ = false;
};

}  // namespace xschedd
