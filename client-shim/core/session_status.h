// What a session's board and ledger show a program that asks (xschedd_get_status). Statistics: no two figures are of
// the same moment, but submitted is never less than completed. Thread rule: any thread that uses the session.
#pragma once

#include <cstdint>

#include "client-shim/core/session.h"
#include "client-shim/include/xschedd.h"

namespace xschedd::shim {

// Adds the counters of all devices.
void AddCounters(Session* session, xschedd_status* status);
// All of one device, as it binds at `now_ns`.
void ReadDevice(Session* session, std::uint32_t slot, std::uint64_t now_ns, xschedd_device_status* status);

}  // namespace xschedd::shim
