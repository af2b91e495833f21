// Messages to systemd, or to any service manager with its protocol (service_protocol.h).
//
// A thread of its own sends the messages in order: a service manager that does not read must not stop the daemon's
// loop. The queue is bounded: it holds no more descriptors than the caller stores at a time, since those that are
// removed before they were sent are dropped. Without a service manager nothing is sent. Thread rule: one thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "daemon/service_manager/service_protocol.h"

namespace xschedd {

class ServiceManager {
 public:
  ServiceManager();
  // Returns when all is told.
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  bool IsPresent() const { return socket_.has_value(); }
  // How often it wants to hear that the loop turns; 0: never.
  std::uint64_t WatchdogUs() const { return watchdog_us_; }

  // "READY=1" and the like.
  void Notify(std::string state) { Send({std::move(state), {}}); }
  // "WATCHDOG=1", before all that waits to be told: thousands of clients that come at once are no reason to be ended.
  void Ping();
  // Keeps the descriptors under this name until Unstore, also while the daemon is down. Nothing is stored under it yet.
  void Store(const std::string& name, std::vector<UniqueFd> descriptors);
  // All of this name.
  void Unstore(const std::string& name);

 private:
  struct Message {
    std::string state;
    std::vector<UniqueFd> descriptors;
    std::string stores = {};  // under which name; empty: nothing
  };
  void Send(Message message);
  void Run();

  const std::optional<NotifySocket> socket_;
  std::uint64_t watchdog_us_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Message> messages_;
  bool is_ping_due_ = false;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace xschedd
