// What has become of a client's time slice on a device, in words, for `xschedctl`: what its client claims, in the
// ledger. Thread rule: the daemon's one thread.
#pragma once

#include <string>

#include "daemon/registry/registry.h"

namespace xschedd {

// "time slice 200 us"; empty: it has the driver's own.
std::string SliceInForce(const Attachment& attachment);
// The same, or "no time slices here: why". Empty: none is wanted, and none is there.
std::string SliceText(const Attachment& attachment);

}  // namespace xschedd
