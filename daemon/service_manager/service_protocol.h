// The protocols of systemd, which other service managers speak as well: descriptors that it hands over, what it says of
// its watchdog, and datagrams to it with or without descriptors (sd_listen_fds(3), sd_watchdog_enabled(3),
// sd_notify(3)).
//
// Without a service manager nothing is handed over and nothing can be sent. What is taken leaves the environment, so
// that it is taken once. Thread rule: the Take functions while no other thread looks at the environment; NotifySocket
// any.
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

// Listening sockets and what was stored.
Result<std::vector<PassedDescriptor>> TakePassedDescriptors();

// How often the service manager wants to hear of us, in microseconds; 0: never.
std::uint64_t TakeWatchdogInterval();

class NotifySocket {
 public:
  // Where $NOTIFY_SOCKET says; none: there is no service manager.
  static std::optional<NotifySocket> FromEnvironment();
  // Waits while the service manager does not read. Returns an errno, or 0. At most 253 descriptors.
  int Send(std::string_view state, const std::vector<UniqueFd>& descriptors) const;

 private:
  explicit NotifySocket(std::string address) : address_(std::move(address)) {}
  std::string address_;  // '@' in front: an abstract one
};

}  // namespace xschedd
