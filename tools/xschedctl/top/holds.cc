#include "tools/xschedctl/top/holds.h"

#include <algorithm>
#include <vector>

namespace xschedd::ctl {

void Holds::Add(const v1::Event& event) {
  const auto key = std::pair(event.client_id(), event.device());
  switch (event.kind()) {
    case v1::EVENT_KIND_HELD: {
      Track& track = tracks_[key];
      // A hold that changes its reason goes on.
      if (track.since_ns == 0) track.since_ns = event.time_ns();
      return;
    }
    case v1::EVENT_KIND_OPENED:
    case v1::EVENT_KIND_IDLE:
    case v1::EVENT_KIND_UNTRACKED: {
      const auto found = tracks_.find(key);
      if (found != tracks_.end()) End(found->second, event.time_ns());
      return;
    }
    case v1::EVENT_KIND_CLIENT_GONE:
      std::erase_if(tracks_, [&](const auto& entry) { return entry.first.first == event.client_id(); });
      return;
    case v1::EVENT_KIND_LOST:
      // The end of a hold may be among what is lost.
      for (auto& [of, track] : tracks_)
        track.since_ns = 0;
      return;
    default:
      return;
  }
}

void Holds::End(Track& track, std::uint64_t time_ns) {
  if (track.since_ns == 0) return;
  track.ended.push_back({time_ns, time_ns - std::min(time_ns, track.since_ns)});
  if (track.ended.size() > kKept) track.ended.pop_front();
  track.since_ns = 0;
}

std::optional<std::uint64_t> Holds::P99(std::uint64_t client_id, const std::string& device, std::uint64_t now_ns,
                                        bool lasts) const {
  const auto found = tracks_.find({client_id, device});
  if (found == tracks_.end()) return std::nullopt;
  const Track& track = found->second;
  std::vector<std::uint64_t> lengths;
  for (const Hold& hold : track.ended) {
    if (hold.end_ns + kKeptNs > now_ns) lengths.push_back(hold.length_ns);
  }
  std::optional<std::uint64_t> p99;
  if (!lengths.empty()) {
    const std::size_t rank = (lengths.size() * 99 + 99) / 100;  // rounded up, from 1
    std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(rank - 1), lengths.end());
    p99 = lengths[rank - 1];
  }
  if (lasts && track.since_ns != 0 && track.since_ns < now_ns) p99 = std::max(p99.value_or(0), now_ns - track.since_ns);
  return p99;
}

}  // namespace xschedd::ctl
