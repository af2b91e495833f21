// A client's time slice on a device, in words for `xschedctl`, as the client's ledger claims it. Thread rule: the
// daemon's one thread.
#pragma once

#include <string>

#include "daemon/registry/registry.h"

namespace xschedd {

// "time slice 200 us". Empty: the driver's own.
std::string SliceInForce(const Attachment& attachment);
// The same, or "no time slices here: why". Empty: none is wanted or in force.
std::string SliceText(const Attachment& attachment);

}  // namespace xschedd
