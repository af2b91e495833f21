// The names of a vendor's entry points, without a pointer to each: pointers in constant data are relocated, and their
// pages copied, at the start of every process under the shim. Thread rule: pure.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <array>

namespace xschedd::shim {

inline constexpr uint32_t kMaxEntries = 512;  // of a vendor

struct EntryNames {
  const char* text;         // the names, each with its NUL
  const uint16_t* offsets;  // of each name in `text`, by entry number
  uint32_t count;

  const char* operator[](uint32_t entry) const { return text + offsets[entry]; }
};

// `text`: `kCount` names, each with its NUL.
template <uint32_t kCount, size_t kSize>
constexpr std::array<uint16_t, kCount> OffsetsOf(const char (&text)[kSize]) {
  static_assert(kCount <= kMaxEntries && kSize <= UINT16_MAX);
  std::array<uint16_t, kCount> offsets{};
  size_t at = 0;
  for (uint16_t& offset : offsets) {
    offset = static_cast<uint16_t>(at);
    while (text[at] != '\0')
      ++at;
    ++at;
  }
  return offsets;
}

// `names.count`: the name is not among them.
inline uint32_t IndexOfName(const EntryNames& names, const char* name) {
  uint32_t index = 0;
  while (index < names.count && strcmp(names[index], name) != 0)
    ++index;
  return index;
}

}  // namespace xschedd::shim
