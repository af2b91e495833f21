// Sends messages to systemd, or to any service manager that speaks its protocol (service_protocol.h).
//
// A thread of its own sends them in order, so that a service manager that does not read cannot block the daemon's loop.
// The queue is bounded by what the caller stores at one time, because Unstore drops unsent descriptors. Without a
// service manager nothing is sent. Thread rule: one thread.
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
  // Returns when all messages are sent.
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  bool IsPresent() const { return socket_.has_value(); }
  // How often it expects a watchdog ping; 0: never.
  std::uint64_t WatchdogUs() const { return watchdog_us_; }

  // "READY=1" and the like.
  void Notify(std::string state) { Send({std::move(state), {}}); }
  // Sends "WATCHDOG=1" ahead of all waiting messages: thousands of clients at once must not get the daemon killed.
  void Ping();
  // Keeps the descriptors under `name` until Unstore, even while the daemon is down. Nothing may be stored under that
  // name yet.
  void Store(const std::string& name, std::vector<UniqueFd> descriptors);
  // Removes all of this name.
  void Unstore(const std::string& name);

 private:
  struct Message {
    std::string state;
    std::vector<UniqueFd> descriptors;
    std::string stores = {};  // the name stored under; empty: none
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
