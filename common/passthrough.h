// The grammar of passthrough: which GPU calls are never gated. The same in the daemon's configuration, in
// XSCHEDD_PASSTHROUGH and in `xschedctl run --passthrough`. One entry is one of
//   librccl.so       a library, by its file name: calls that it makes. It also matches librccl.so.1.0, but not
//                    librcclx.so
//   hipMemcpyAsync   an entry point that is gated, from any caller; it also matches its variants
//                    (hipMemcpyAsync_spt, cuMemcpyAsync_v2_ptsz, a C++-mangled name)
//   kernel:GLOB      kernels by name, as the runtime has it or demangled; * is any text, ? one character, and
//                    everything else stands for itself
// Entries of a list are separated by commas, and blanks around them are ignored; a pattern in a list has ? in place of
// a comma. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace xschedd {

struct PassthroughEntry {
  enum class Kind { kLibrary, kEntryPoint, kKernel };
  Kind kind = Kind::kLibrary;
  std::string text;  // as written, without "kernel:"

  // As written in a list.
  std::string Written() const { return (kind == Kind::kKernel ? "kernel:" : "") + text; }
  bool operator==(const PassthroughEntry&) const = default;
};

// One entry. The error says what is wrong with it and what to write instead.
Result<PassthroughEntry> ParsePassthrough(std::string_view text);
// The entries of a list, as written; empty ones are left out.
std::vector<std::string_view> SplitPassthrough(std::string_view list);

// `path`: of the object that a call comes from.
bool MatchesLibrary(std::string_view library, std::string_view path);
// `exported`: the name that the runtime exports.
bool MatchesEntryPoint(std::string_view name, std::string_view exported);
bool MatchesGlob(std::string_view pattern, std::string_view text);

}  // namespace xschedd
