// Which calls are let through ungated by configuration (common/passthrough.h has the grammar): by entry point, by the
// library that makes the call, by the name of the kernel.
// Thread rule: immutable but for its caches; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "client-shim/core/caller_library.h"
#include "client-shim/core/interface.h"
#include "client-shim/core/name_verdicts.h"
#include "common/passthrough.h"

namespace xschedd::shim {

class PassthroughRules {
 public:
  static constexpr int kNone = -1;

  // `entry_names`: the stub's, by entry number. A rule for an entry point of another vendor matches nothing.
  PassthroughRules(std::vector<PassthroughEntry> entries, const char* const* entry_names, std::uint32_t entry_count);

  // The index of a rule that lets the call pass, or kNone. Asks the runtime for the kernel's name only if a rule needs
  // it.
  int Match(const Submission& submission, const Vendor& vendor, CallerLibraries* callers) const;

  const std::vector<PassthroughEntry>& Entries() const { return entries_; }

 private:
  static int DecideLibrary(const void* self, const char* path);
  static int DecideKernel(const void* self, const char* name);

  const std::vector<PassthroughEntry> entries_;
  std::vector<int> by_entry_;  // by entry number: the rule's index or kNone; empty: no rule names an entry point
  bool has_libraries_ = false;
  bool has_kernels_ = false;
  mutable NameVerdicts libraries_{&DecideLibrary, this};  // by call site
  mutable NameVerdicts kernels_{&DecideKernel, this};     // by handle
};

}  // namespace xschedd::shim
