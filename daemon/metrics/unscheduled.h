// Who computes on this machine's GPUs and is no client, for the metrics. Looking through /proc takes a while where
// there are many processes: a thread of its own does it, when somebody wants to know, at most every kPauseNs and for no
// more than a twentieth of the time. What is known meanwhile is from the time before. Thread rule: the daemon's one
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include "common/gpu_users.h"
#include "daemon/registry/host_gpus.h"

namespace xschedd {

class UnscheduledUsers {
 public:
  static constexpr std::uint64_t kPauseNs = 10'000'000'000;
  static constexpr std::uint64_t kPausePerCost = 19;

  // `root`: what stands before /sys and /proc.
  explicit UnscheduledUsers(const std::string& root = {}, std::size_t most = kMostGpuUsers)
      : root_(root), gpus_(root), most_(most) {}
  ~UnscheduledUsers();
  UnscheduledUsers(const UnscheduledUsers&) = delete;
  UnscheduledUsers& operator=(const UnscheduledUsers&) = delete;

  // Has it looked again, if it is time.
  void LookSoon(std::uint64_t now_ns);
  // Waits until no look is under way.
  void Finish();

  // By device, who was found that is neither one of these processes nor a child of one, which inherits what its parent
  // has open. kNoDevice: with the driver open, and no GPU. None: not known yet, or not of all processes.
  static constexpr std::string_view kNoDevice = "none";
  std::optional<std::map<std::string, std::uint64_t>> Count(const std::unordered_set<std::uint64_t>& clients) const;

 private:
  struct User {
    std::uint64_t pid;
    std::uint64_t parent;
    std::vector<std::string> devices;
  };
  void Look();

  const std::string root_;
  const HostGpus gpus_;
  const std::size_t most_;
  std::thread thread_;
  std::atomic<bool> is_looking_ = false;
  std::atomic<bool> stops_ = false;
  mutable std::mutex mutex_;  // of what follows
  std::optional<std::vector<User>> found_;
  std::uint64_t not_before_ns_ = 0;
};

}  // namespace xschedd
