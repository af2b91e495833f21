// The entry points of every vendor that the shim wraps, for code that checks names without the shim. Thread rule:
// constants.
#pragma once

#include <span>
#include <string_view>

namespace xschedd {

struct EntryPointName {
  std::string_view name;  // as the runtime exports it
  bool is_gated;          // it submits work; the others only tell the shim something
};

std::span<const EntryPointName> EntryPointNames();

// Whether `name` is a function of HIP that the shim does not wrap. (CUDA's are not listed.)
bool IsLeftAlone(std::string_view name);

}  // namespace xschedd
