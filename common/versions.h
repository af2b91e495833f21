// Which versions of the shared-memory ABI (abi.h) this build speaks, and how the two sides agree on one of them.
//
// A published version is frozen: tests/abi/v<N> keeps a copy of it, and the table in versions.cc its layout hash. A
// newer version may only add, in padding or after everything that the older one has. So one set of structs serves all,
// and code that uses an addition first checks whether the session's version has it. Each build speaks the newest
// version and at least the one before it; at present, all published ones.
//
// Agreement (preamble.h): the client's hello has the newest version that it speaks, and a daemon that speaks it serves
// it. Any other daemon refuses, and names the newest that it speaks itself; the client retries once with that, if it
// speaks it. Without a common version both sides say so, and the client runs unscheduled.
// Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace xschedd::abi {

struct Layout {
  std::uint32_t version;
  std::uint64_t layout_hash;
  std::size_t board_bytes;   // of the memory objects
  std::size_t ledger_bytes;  // the same
  bool operator==(const Layout&) const = default;
};

// Oldest first; never empty.
std::span<const Layout> Spoken();

inline const Layout& Newest() {
  return Spoken().back();
}

// Null: not spoken. Builds with one version and different hashes do not match: one of them was never published.
inline const Layout* FindSpoken(std::uint32_t version, std::uint64_t layout_hash) {
  for (const Layout& layout : Spoken()) {
    if (layout.version == version && layout.layout_hash == layout_hash) return &layout;
  }
  return nullptr;
}

// "1", "1 and 2", "1, 2 and 3".
inline std::string SpokenText() {
  std::string text;
  for (const Layout& layout : Spoken()) {
    if (!text.empty()) text += &layout == &Newest() ? " and " : ", ";
    text += std::to_string(layout.version);
  }
  return text;
}

}  // namespace xschedd::abi
