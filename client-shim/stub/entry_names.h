// Looks up a name in a list of names. Thread rule: pure.
#pragma once

#include <stdint.h>
#include <string.h>

namespace xschedd::shim {

// `count`: the name is not in the list.
inline uint32_t IndexOfName(const char* const* names, uint32_t count, const char* name) {
  uint32_t index = 0;
  while (index < count && strcmp(names[index], name) != 0)
    ++index;
  return index;
}

}  // namespace xschedd::shim
