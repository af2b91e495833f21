// Reads a session's board and ledger for a program that asks (xschedd_get_status). The figures are statistics, and not
// of one moment, but submitted is never less than completed. Thread rule: any thread that uses the session.
#pragma once

#include <cstdint>

#include "client-shim/core/session.h"
#include "client-shim/include/xschedd.h"

namespace xschedd::shim {

// Adds the counters of all devices to `status`.
void AddCounters(Session* session, xschedd_status* status);
// Fills in one device, as of `now_ns`.
void ReadDevice(Session* session, std::uint32_t slot, std::uint64_t now_ns, xschedd_device_status* status);

}  // namespace xschedd::shim
