// Finds processes that use this machine's GPUs without being clients, for the metrics. Scanning /proc is slow with many
// processes, so a thread of its own scans on demand, at most once per kPauseNs and for at most a twentieth of the time.
// Until a scan is done, the previous result stands. Thread rule: the daemon's one thread.
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

  // `root` is put before /sys and /proc.
  explicit UnscheduledUsers(const std::string& root = {}, std::size_t limit = kMaxGpuUsers)
      : root_(root), gpus_(root), limit_(limit) {}
  ~UnscheduledUsers();
  UnscheduledUsers(const UnscheduledUsers&) = delete;
  UnscheduledUsers& operator=(const UnscheduledUsers&) = delete;

  // Starts a scan if one is due.
  void ScanSoon(std::uint64_t now_ns);
  // Waits until no scan is running.
  void Finish();

  // The number of processes, by device, that are neither in `clients` nor children of one (a child inherits what its
  // parent has open). kNoDevice: processes with the driver open, but no GPU. None: no scan is done yet, or the last one
  // could not see all processes.
  static constexpr std::string_view kNoDevice = "none";
  std::optional<std::map<std::string, std::uint64_t>> Count(const std::unordered_set<std::uint64_t>& clients) const;

 private:
  struct User {
    std::uint64_t pid;
    std::uint64_t parent;
    std::vector<std::string> devices;
  };
  void Scan();

  const std::string root_;
  const HostGpus gpus_;
  const std::size_t limit_;
  std::thread thread_;
  std::atomic<bool> is_scanning_ = false;
  std::atomic<bool> stops_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<std::vector<User>> found_;
  std::uint64_t not_before_ns_ = 0;
};

}  // namespace xschedd
