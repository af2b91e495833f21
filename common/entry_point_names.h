// The entry points of every vendor that the shim wraps, for whoever must tell a name that is right from one that is
// not without having the shim at hand. Thread rule: constants.
#pragma once

#include <span>
#include <string_view>

namespace xschedd {

struct EntryPointName {
  std::string_view name;  // as the runtime exports it
  bool is_gated;          // it submits work; the others only tell the shim something
};

std::span<const EntryPointName> EntryPointNames();

// Whether `name` is another function of HIP, which the shim leaves alone. (CUDA's are not listed here.)
bool IsLeftAlone(std::string_view name);

}  // namespace xschedd
