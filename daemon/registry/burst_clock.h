// How long the bursts of one client on one device take, from busy to idle: the time with an open gate, by the daemon's
// clock. It includes whatever a burst waits for once it may run: work of others in flight, the wake-up of its thread,
// its own host work. A client cannot falsify it except by being slow.
// Thread rule: the daemon's one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xschedd {

class BurstClock {
 public:
  // `whole`: the daemon saw it begin. Other bursts do not count for UsualNs.
  void Begin(bool whole, std::uint64_t now_ns) {
    since_ns_ = now_ns;
    held_ns_ = 0;
    whole_ = whole;
  }
  // Time the burst spent held.
  void AddHeld(std::uint64_t ns) { held_ns_ += ns; }
  void End(std::uint64_t now_ns) {
    const std::uint64_t open = OpenNs(now_ns, 0);
    // Overestimates rather than underestimates: beginning too early still meets a deadline. A longer burst counts at
    // once; each shorter one takes off a part of the difference.
    if (whole_) usual_ns_ = open >= usual_ns_ ? open : usual_ns_ - (usual_ns_ - open) / kFollow;
    Abandon();
  }
  // Drops the current burst; UsualNs keeps its value.
  void Abandon() {
    since_ns_ = 0;
    whole_ = false;
  }

  // Of the current burst; 0: there is none. `held_since_ns`: since when it has been held; 0: it is not held now.
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
  std::uint64_t held_ns_ = 0;   // of the current burst
  std::uint64_t usual_ns_ = 0;
  bool whole_ = false;
};

}  // namespace xschedd
