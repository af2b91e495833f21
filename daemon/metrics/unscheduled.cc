#include "daemon/metrics/unscheduled.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"

namespace xschedd {

UnscheduledUsers::~UnscheduledUsers() {
  stops_ = true;
  Finish();
}

void UnscheduledUsers::Finish() {
  if (thread_.joinable()) thread_.join();
}

void UnscheduledUsers::ScanSoon(std::uint64_t now_ns) {
  if (is_scanning_) return;
  {
    const std::lock_guard lock(mutex_);
    if (now_ns < not_before_ns_) return;
  }
  Finish();
  is_scanning_ = true;
  thread_ = std::thread([this] { Scan(); });
}

void UnscheduledUsers::Scan() {
  const std::uint64_t began = MonotonicNs();
  const GpuUsers gpu = FindGpuUsers(
      root_, [this] { return !stops_; }, limit_);
  std::map<std::string, std::string> addresses;  // by device file
  std::vector<User> users;
  for (const GpuUser& user : gpu.users) {
    User& one = users.emplace_back(User{user.pid, user.parent, {}});
    for (const std::string& file : user.files) {
      const auto [known, is_new] = addresses.try_emplace(file);
      if (is_new) known->second = gpus_.AddressOf(file);
      if (!known->second.empty()) one.devices.push_back(known->second);
    }
    std::sort(one.devices.begin(), one.devices.end());
    one.devices.erase(std::unique(one.devices.begin(), one.devices.end()), one.devices.end());
    if (one.devices.empty()) one.devices.emplace_back(kNoDevice);
  }
  const std::uint64_t cost = MonotonicNs() - began;
  const std::lock_guard lock(mutex_);
  if (gpu.is_complete && gpu.hidden.empty()) {
    found_ = std::move(users);
  } else {
    found_.reset();
  }
  not_before_ns_ = began + cost + std::max(kPauseNs, cost * kPausePerCost);
  is_scanning_ = false;
}

std::optional<std::map<std::string, std::uint64_t>> UnscheduledUsers::Count(
    const std::unordered_set<std::uint64_t>& clients) const {
  const std::lock_guard lock(mutex_);
  if (!found_) return std::nullopt;
  std::map<std::string, std::uint64_t> counts;
  for (const User& user : *found_) {
    if (clients.contains(user.pid) || clients.contains(user.parent)) continue;
    for (const std::string& device : user.devices)
      ++counts[device];
  }
  return counts;
}

}  // namespace xschedd
