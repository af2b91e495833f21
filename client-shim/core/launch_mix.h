// The launches of one batch by kind, for a few kinds. Plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace xschedd::shim {

// Identifies what was launched: a kernel with its grid, a graph, a copy of some size. The stub computes it; the core
// only compares. 0: unknown.
using LaunchKey = std::uint64_t;

struct LaunchMix {
  static constexpr std::size_t kKinds = 6;
  struct Part {
    LaunchKey key;
    std::uint32_t launches;
  };
  std::array<Part, kKinds> parts{};
  std::uint32_t kinds = 0;
  bool is_complete = true;  // false: some launches are in no part

  // Whether another kind would get a part.
  bool HasRoom() const { return is_complete && kinds < kKinds; }

  void Add(LaunchKey key, std::uint32_t launches = 1) {
    for (Part *part = parts.data(), *const end = part + kinds; part != end; ++part) {
      if (part->key != key) continue;
      part->launches += launches;
      return;
    }
    if (key == 0 || kinds == kKinds) {
      is_complete = false;
      return;
    }
    parts[kinds++] = Part{key, launches};
  }
  void Add(const LaunchMix& other) {
    for (std::uint32_t i = 0; i < other.kinds; ++i)
      Add(other.parts[i].key, other.parts[i].launches);
    is_complete = is_complete && other.is_complete;
  }
};

}  // namespace xschedd::shim
