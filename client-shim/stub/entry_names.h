// Looks a name up in a list of names. Thread rule: pure.
#pragma once

#include <stdint.h>
#include <string.h>

namespace xschedd::shim {

// `count`: it is not there.
inline uint32_t PlaceOfName(const char* const* names, uint32_t count, const char* name) {
  uint32_t place = 0;
  while (place < count && strcmp(names[place], name) != 0)
    ++place;
  return place;
}

}  // namespace xschedd::shim
