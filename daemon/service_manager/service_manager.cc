#include "daemon/service_manager/service_manager.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace xschedd {

ServiceManager::ServiceManager() : socket_(NotifySocket::FromEnvironment()) {
  if (!IsPresent()) return;
  watchdog_us_ = TakeWatchdogInterval();
  thread_ = std::thread([this] { Run(); });
}

ServiceManager::~ServiceManager() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void ServiceManager::Store(const std::string& name, std::vector<UniqueFd> descriptors) {
  // FDPOLL=0: otherwise systemd drops an eventfd or memfd that polls as hung up.
  Send({"FDSTORE=1\nFDNAME=" + name + "\nFDPOLL=0", std::move(descriptors), name});
}

void ServiceManager::Unstore(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto unsent = std::find_if(messages_.begin(), messages_.end(),
                                     [&](const Message& message) { return message.stores == name; });
    if (unsent != messages_.end()) {
      messages_.erase(unsent);
      return;
    }
  }
  Send({"FDSTOREREMOVE=1\nFDNAME=" + name, {}});
}

void ServiceManager::Ping() {
  if (!IsPresent()) return;
  {
    const std::lock_guard lock(mutex_);
    is_ping_due_ = true;
  }
  wake_.notify_one();
}

void ServiceManager::Send(Message message) {
  if (!IsPresent()) return;
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  wake_.notify_one();
}

void ServiceManager::Run() {
  for (;;) {
    Message message;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return is_ending_ || is_ping_due_ || !messages_.empty(); });
      if (std::exchange(is_ping_due_, false)) {
        message.state = "WATCHDOG=1";
      } else if (messages_.empty()) {
        return;
      } else {
        message = std::move(messages_.front());
        messages_.pop_front();
      }
    }
    const int error = socket_->Send(message.state, message.descriptors);
    if (error != 0)
      SPDLOG_WARN("cannot notify the service manager \"{}\" error=\"{}\"", message.state, std::strerror(error));
  }
}

}  // namespace xschedd
