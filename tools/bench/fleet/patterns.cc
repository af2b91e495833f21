#include "tools/bench/fleet/patterns.h"

#include <fmt/format.h>

namespace xschedd::fleet {

using simulate::ArrivalKind;

std::optional<std::uint32_t> Patterns::Find(std::string_view name) const {
  for (std::uint32_t i = 0; i < all.size(); ++i)
    if (all[i].client.name == name) return i;
  return std::nullopt;
}

Result<Patterns> ReadPatterns(std::istream& input, const std::string& source) {
  Result<simulate::Workload> workload = simulate::ReadWorkload(input, source);
  if (!workload) return tl::unexpected(workload.error());
  Patterns patterns;
  patterns.device = workload->kind;
  for (simulate::ClientSpec& client : workload->clients) {
    const ArrivalKind kind = client.arrivals.kind;
    const auto fail = [&](const char* why) {
      return Fail(fmt::format("{}: \"{}\" {}", source, client.name, why),
                  "give a client of one device with arrivals that go on");
    };
    if (client.devices.size() != 1) return fail("is on several devices");
    if (!client.group.empty()) return fail("is in a group");
    if (kind == ArrivalKind::kGiven || kind == ArrivalKind::kGivenClosed)
      return fail("has a list of requests, which ends");
    client.devices = {0};
    Pattern pattern;
    pattern.ends_with_work =
        kind == ArrivalKind::kSaturating || (kind == ArrivalKind::kClosed && client.arrivals.think_ns == 0);
    pattern.has_latency = !pattern.ends_with_work;
    pattern.client = std::move(client);
    patterns.all.push_back(std::move(pattern));
  }
  return patterns;
}

}  // namespace xschedd::fleet
