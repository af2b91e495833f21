// Which calls are let through ungated by configuration (common/passthrough.h has the grammar): by entry point, by the
// library that makes the call, by the name of the kernel.
// Thread rule: made once and only read afterwards, by any thread; it caches its verdicts on names.
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

  // `entry_names`: of the stub, by entry number. An entry point that it does not have is another vendor's, and matches
  // nothing here.
  PassthroughRules(std::vector<PassthroughEntry> entries, const char* const* entry_names, std::uint32_t entry_count);

  // The number of the first entry that lets the call pass, or kNone. Asks the runtime for the kernel's name only where
  // an entry goes by it.
  int Match(const Submission& submission, const Vendor& vendor, CallerLibraries* callers) const;

  const std::vector<PassthroughEntry>& Entries() const { return entries_; }

 private:
  static int DecideLibrary(const void* self, const char* path);
  static int DecideKernel(const void* self, const char* name);

  const std::vector<PassthroughEntry> entries_;
  std::vector<int> by_entry_;  // by entry number; empty: no entry goes by it
  bool has_libraries_ = false;
  bool has_kernels_ = false;
  mutable NameVerdicts libraries_{&DecideLibrary, this};  // by call site
  mutable NameVerdicts kernels_{&DecideKernel, this};     // by handle
};

}  // namespace xschedd::shim
