// The configuration of xschedd-nri (nri.toml): what pods of a namespace may have, and what they have if they ask for
// nothing. Without a file, no pod raises itself. Thread rule: values; LoadSettings reads a file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/result.h"

namespace xschedd::nri {

inline constexpr char kDefaultSettingsPath[] = "/etc/xschedd/nri.toml";

struct NamespaceSettings {
  int ceiling = 0;                     // the highest priority
  std::uint32_t weight_ceiling = 100;  // the largest weight
  std::optional<int> priority = {};    // of pods that ask for none; at most the ceiling
  std::uint64_t memory = 0;  // the most bytes of device memory that a container has on each device; 0: no limit
};

struct Settings {
  std::string shim;  // its path on the node; empty: the installed one
  NamespaceSettings other;
  std::map<std::string, NamespaceSettings> namespaces;

  const NamespaceSettings& Of(const std::string& name) const {
    const auto found = namespaces.find(name);
    return found == namespaces.end() ? other : found->second;
  }
};

// `file` is its name in errors. Fails on the first mistake, with its place, cause and remedy.
Result<Settings> ParseSettings(const std::string& text, const std::string& file);
// A missing file counts as an empty one.
Result<Settings> LoadSettings(const std::string& path);

}  // namespace xschedd::nri
