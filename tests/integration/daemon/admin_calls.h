// Calls of the daemon that many tests make; each fails the test if the call fails. Thread rule: the test's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/integration/daemon/daemon_process.h"

namespace xschedd::test {

inline constexpr char kGpu[] = "0000:c1:00.0";
inline constexpr char kOtherGpu[] = "0000:c2:00.0";

v1::ListClientsResponse List(DaemonProcess& daemon);
std::optional<v1::Client> Find(DaemonProcess& daemon, std::uint64_t id);
v1::Stats Stats(DaemonProcess& daemon);
std::uint64_t OwnPid();

}  // namespace xschedd::test
