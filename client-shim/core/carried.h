// What the core keeps of a call of the program from the call's beginning to its end: in the bytes that the stub's
// wrapper has for it on its stack. Thread rule: the thread that makes the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace xschedd::shim {

// At the beginning. What has no value of its own has none yet.
template <typename Part, std::size_t size>
Part& Make(std::byte (&core)[size]) {
  static_assert(sizeof(Part) <= size && alignof(Part) <= alignof(std::uint64_t));
  return *::new (core) Part;
}
// In between.
template <typename Part, std::size_t size>
const Part& Made(const std::byte (&core)[size]) {
  return *std::launder(reinterpret_cast<const Part*>(core));
}
// At the end: ends with what this returns.
struct EndPart {
  template <typename Part>
  void operator()(Part* part) const {
    std::destroy_at(part);
  }
};
template <typename Part, std::size_t size>
std::unique_ptr<Part, EndPart> Last(std::byte (&core)[size]) {
  return std::unique_ptr<Part, EndPart>(std::launder(reinterpret_cast<Part*>(core)));
}

}  // namespace xschedd::shim
