#include "daemon/service_manager/service_manager.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "daemon/build_config.h"
#if XSCHEDD_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

namespace xschedd {

Result<std::vector<PassedDescriptor>> TakePassedDescriptors() {
  std::vector<PassedDescriptor> passed;
#if XSCHEDD_HAVE_SYSTEMD
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  if (count < 0) return Fail(std::string("cannot take the descriptors of systemd: ") + std::strerror(-count));
  for (int i = 0; i < count; ++i) {
    passed.push_back({names[i], UniqueFd(SD_LISTEN_FDS_START + i)});
    std::free(names[i]);
  }
  std::free(names);
#endif
  return passed;
}

ServiceManager::ServiceManager() {
#if XSCHEDD_HAVE_SYSTEMD
  is_present_ = std::getenv("NOTIFY_SOCKET") != nullptr;
  std::uint64_t interval_us = 0;
  if (is_present_ && sd_watchdog_enabled(1, &interval_us) > 0) watchdog_us_ = interval_us;
  if (is_present_) thread_ = std::thread([this] { Run(); });
#endif
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
  // FDPOLL=0: otherwise an eventfd or memfd that polls as hung up would be dropped.
  Send({"FDSTORE=1\nFDNAME=" + name + "\nFDPOLL=0", std::move(descriptors), name});
}

void ServiceManager::Unstore(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto untold = std::find_if(messages_.begin(), messages_.end(),
                                     [&](const Message& message) { return message.stores == name; });
    if (untold != messages_.end()) {
      messages_.erase(untold);
      return;
    }
  }
  Send({"FDSTOREREMOVE=1\nFDNAME=" + name, {}});
}

void ServiceManager::Ping() {
  if (!is_present_) return;
  {
    const std::lock_guard lock(mutex_);
    is_ping_due_ = true;
  }
  wake_.notify_one();
}

void ServiceManager::Send(Message message) {
  if (!is_present_) return;
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  wake_.notify_one();
}

void ServiceManager::Run() {
#if XSCHEDD_HAVE_SYSTEMD
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
    std::vector<int> descriptors;
    descriptors.reserve(message.descriptors.size());
    for (const UniqueFd& fd : message.descriptors)
      descriptors.push_back(fd.Get());
    const int sent = sd_pid_notify_with_fds(0, 0, message.state.c_str(), descriptors.data(),
                                            static_cast<unsigned>(descriptors.size()));
    if (sent < 0)
      SPDLOG_WARN("cannot tell the service manager \"{}\" error=\"{}\"", message.state, std::strerror(-sent));
  }
#endif
}

}  // namespace xschedd
