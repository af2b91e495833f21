// What the core keeps of a call of the program from the call's beginning to its end: in the bytes that the stub's
// wrapper has for it on its stack. Thread rule: the thread that makes the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace xschedd::shim {

// At the beginning. What has no value of its own has none yet.
template <typename Part, std::size_t size>
Part& Make(std::byte (&core)[size]) {
  static_assert(sizeof(Part) <= size && alignof(Part) <= alignof(std::uint64_t) && std::is_trivially_copyable_v<Part>);
  return *::new (core) Part;
}
// At the end.
template <typename Part, std::size_t size>
const Part& Made(const std::byte (&core)[size]) {
  return *std::launder(reinterpret_cast<const Part*>(core));
}

}  // namespace xschedd::shim
