#include "tools/bench/fleet/import_records.h"

#include <ctime>

namespace xschedd::fleet {

std::optional<std::int64_t> ReadTime(const std::string& text) {
  std::tm time{};
  const char* const end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (end == nullptr || (*end != '\0' && std::string(end) != "Z")) return std::nullopt;
  return timegm(&time);
}

std::uint32_t ImportedSpace(const std::string& name, Trace& trace) {
  for (std::uint32_t i = 0; i < trace.spaces.size(); ++i)
    if (trace.spaces[i].name == name) return i;
  trace.spaces.push_back(
      {.name = name, .tier = 1, .priority = 0, .pattern = kImportedPattern, .shards = 0, .limit_s = 0});
  return static_cast<std::uint32_t>(trace.spaces.size() - 1);
}

}  // namespace xschedd::fleet
