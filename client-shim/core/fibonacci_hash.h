// Fibonacci hashing: spreads keys that are close together, such as addresses, over a table of a power of two. The
// factor is 2^64 divided by the golden ratio. Needs nothing but the language, because the stub uses it, too. Thread
// rule: pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace xschedd::shim {

// An index below 2^bits.
template <unsigned bits>
constexpr size_t FibonacciHash(uint64_t key) {
  static_assert(bits > 0 && bits < 64);
  return static_cast<size_t>(key * 0x9e3779b97f4a7c15ull >> (64 - bits));
}

}  // namespace xschedd::shim
