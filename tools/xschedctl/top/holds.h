// How long clients were held recently, from the daemon's events, for a percentile. Bounded memory: the last kKept holds
// of each client and device. Thread rule: one user at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "admin.pb.h"

namespace xschedd::ctl {

class Holds {
 public:
  static constexpr std::uint64_t kKeptNs = 60'000'000'000;
  static constexpr std::size_t kKept = 1024;

  // In the order in which they come.
  void Add(const v1::Event& event);
  // The 99th percentile (nearest rank) of the holds that ended in the last kKeptNs, in ns. `lasts`: it is held now, and
  // this hold counts with its length so far if that is longer. nullopt: it was not held.
  std::optional<std::uint64_t> P99(std::uint64_t client_id, const std::string& device, std::uint64_t now_ns,
                                   bool lasts) const;

 private:
  struct Hold {
    std::uint64_t end_ns;
    std::uint64_t length_ns;
  };
  struct Track {
    std::uint64_t since_ns = 0;  // 0: not held
    std::deque<Hold> ended;      // oldest first
  };

  static void End(Track& track, std::uint64_t time_ns);

  std::map<std::pair<std::uint64_t, std::string>, Track> tracks_;  // by client and device
};

}  // namespace xschedd::ctl
