// systemd's protocols, which other service managers speak as well: passed descriptors (sd_listen_fds(3)), the watchdog
// interval (sd_watchdog_enabled(3)), and datagrams with or without descriptors (sd_notify(3)).
//
// Without a service manager nothing is passed and nothing can be sent. The Take functions remove what they read from
// the environment, so that it is taken once. Thread rule: the Take functions while no other thread uses the
// environment; NotifySocket any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/unique_fd.h"

namespace xschedd {

struct PassedDescriptor {
  std::string name;
  UniqueFd fd;
};

// Listening sockets and stored descriptors.
Result<std::vector<PassedDescriptor>> TakePassedDescriptors();

// How often the service manager expects a ping, in microseconds; 0: never.
std::uint64_t TakeWatchdogInterval();

class NotifySocket {
 public:
  // At $NOTIFY_SOCKET; none: there is no service manager.
  static std::optional<NotifySocket> FromEnvironment();
  // Blocks while the service manager does not read. At most 253 descriptors. Returns 0 or an errno.
  int Send(std::string_view state, const std::vector<UniqueFd>& descriptors) const;

 private:
  explicit NotifySocket(std::string address) : address_(std::move(address)) {}
  std::string address_;  // a leading '@': an abstract socket
};

}  // namespace xschedd
