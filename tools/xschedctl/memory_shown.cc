#include "tools/xschedctl/memory_shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/bytes_text.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {
namespace {

constexpr std::uint64_t kLeastDifference = std::uint64_t{512} << 20;
constexpr std::uint64_t kLeastPart = 10;  // one tenth

std::string Difference(std::uint64_t pid, const std::string& device, std::uint64_t reported, std::uint64_t counted) {
  const std::string_view why =
      reported > counted
          ? "the rest is memory that its shim does not see (the driver's own, such as code of kernels, or allocated "
            "past the runtime), and no limit binds it"
          : "its shim missed that some was freed, or counts memory that the driver does not report for the process";
  return fmt::format("pid {} on {}: the driver reports {}, its shim counts {}: {}\n", pid, OneLine(device),
                     BytesText(reported), BytesText(counted), why);
}

}  // namespace

std::optional<std::uint64_t> CountedMemory(const v1::ClientDevice& device) {
  return device.has_memory_bytes() ? std::optional<std::uint64_t>(device.memory_bytes()) : std::nullopt;
}

std::optional<MemoryShown> ShownMemory(std::optional<std::uint64_t> reported, std::optional<std::uint64_t> counted) {
  if (reported) return MemoryShown{*reported, false};
  if (counted) return MemoryShown{*counted, true};
  return std::nullopt;
}

std::string Text(const MemoryShown& memory) {
  return (memory.is_counted ? "~" : "") + BytesText(memory.bytes);
}

bool Differs(std::uint64_t reported, std::uint64_t counted) {
  const std::uint64_t context = reported > counted ? std::min(kContextBytes, reported - counted) : 0;
  const std::uint64_t expected = counted + context;
  const std::uint64_t difference = reported > expected ? reported - expected : expected - reported;
  return difference > std::max(reported / kLeastPart, kLeastDifference);
}

MemoryNotes NotesOn(const v1::ListClientsResponse& answer, const DeviceMemory& memory) {
  MemoryNotes notes;
  // A driver reports by process, which can have several sessions.
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> counted;
  for (const v1::Client& client : answer.clients()) {
    for (const v1::ClientDevice& device : client.devices()) {
      const auto bytes = CountedMemory(device);
      if (!bytes) continue;
      counted[{client.pid(), device.device()}] += *bytes;
    }
  }
  for (const auto& [place, bytes] : counted) {
    const auto reported = memory.Of(place.first, place.second);
    notes.any_counted |= !reported;
    if (reported && Differs(*reported, bytes))
      notes.differences += Difference(place.first, place.second, *reported, bytes);
  }
  return notes;
}

}  // namespace xschedd::ctl
