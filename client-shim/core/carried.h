// Storage for what the core keeps about a call of the program from its beginning to its end: bytes that the stub's
// wrapper reserves on its stack. Thread rule: the thread that makes the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace xschedd::shim {

// A Part in such bytes, or none.
template <typename Part>
class Carried {
 public:
  // At the beginning of the call: there is no Part.
  template <std::size_t size>
  static Carried& Begin(std::byte (&core)[size]) {
    static_assert(sizeof(Carried) <= size && alignof(Carried) <= alignof(std::uint64_t));
    auto& carried = *::new (core) Carried;
    carried.is_there_ = false;
    return carried;
  }
  // Makes the Part. At most once.
  template <typename... Arguments>
  Part& Put(Arguments&&... arguments) {
    Part& part = *::new (bytes_) Part(std::forward<Arguments>(arguments)...);
    is_there_ = true;
    return part;
  }
  // In between. Null: there is none.
  template <std::size_t size>
  static const Part* In(const std::byte (&core)[size]) {
    const auto& carried = *std::launder(reinterpret_cast<const Carried*>(core));
    return carried.is_there_ ? std::launder(reinterpret_cast<const Part*>(carried.bytes_)) : nullptr;
  }
  // At the end of the call. The Part is destroyed with the pointer that this returns.
  template <std::size_t size>
  static auto End(std::byte (&core)[size]) {
    return std::unique_ptr<Part, Destroy>(const_cast<Part*>(In(core)));
  }

 private:
  struct Destroy {
    void operator()(Part* part) const { std::destroy_at(part); }
  };
  alignas(Part) std::byte bytes_[sizeof(Part)];
  bool is_there_;  // not a pointer: the end of a launch would wait for it to be loaded
};

}  // namespace xschedd::shim
