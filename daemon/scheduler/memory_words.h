// A client's device memory and its limit, in words for people, by its shim's account. Thread rule: the daemon's one
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/registry/registry.h"

namespace xschedd {

// The limit that the client has on a device now, and where it comes from.
struct MemoryLimitHere {
  std::uint64_t bytes = 0;  // 0: none
  bool is_own = false;      // its process's own (XSCHEDD_MEMORY)
};
MemoryLimitHere LimitHere(const Attachment& attachment);

// "it has 20.0 GiB here, and may have 24.0 GiB: ...". Empty: it has no limit, and its shim keeps no account.
std::string MemoryText(const Attachment& attachment);
// How to give it more: for one whose allocations are refused.
std::string MemoryRemedy(const Attachment& attachment);
// Why a limit that was set for the client has no effect; empty: it has.
std::string MemoryNotApplied(const Client& client);

}  // namespace xschedd
