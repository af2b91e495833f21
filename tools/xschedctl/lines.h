// Texts of several lines. Thread rule: pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "common/one_line.h"

namespace xschedd::ctl {

// What `map` makes of each line, each ended by a line feed. `map` gets it without control characters.
template <typename Map>
std::string MapLines(std::string_view text, Map map) {
  std::string mapped;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    mapped += map(OneLine(line)) + "\n";
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return mapped;
}

}  // namespace xschedd::ctl
