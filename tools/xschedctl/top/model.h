// What `xschedctl top` shows, as numbers: the daemon's answers of the last seconds become rates. No I/O. Thread rule:
// one user at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "admin.pb.h"
#include "tools/xschedctl/device_memory.h"
#include "tools/xschedctl/memory_shown.h"
#include "tools/xschedctl/top/holds.h"

namespace xschedd::ctl {

// One client on one device; a client without a device has a row, too. nullopt: not known.
struct TopRow {
  std::uint64_t client_id = 0;
  std::uint64_t pid = 0;
  std::uint32_t uid = 0;
  int priority = 0;
  std::uint32_t weight = 0;
  bool hold = false;  // by an administrator
  std::string device;
  std::string state;
  std::string waits_for;
  std::optional<double> gpu;    // part of the time in which it used the GPU
  std::optional<double> share;  // part of what all clients of the device used
  std::optional<double> held;   // part of the time
  std::optional<double> launches_s;
  std::optional<std::uint64_t> p99_hold_ns;
  std::uint32_t in_flight = 0;
  std::optional<MemoryShown> memory;
  std::uint64_t memory_limit = 0;  // bytes; 0: none
  std::string claim;               // the job or pod, else the claim's name; empty: it has none
  std::string labels;              // of the claim, for the filter
  std::string group;
  std::string command;
};

struct TopDevice {
  std::string address;
  std::string name;
  std::uint32_t clients = 0;
  std::uint32_t busy = 0;
  std::uint32_t held = 0;
  std::optional<double> gpu;  // the sum of its clients'; above 1 where kernels run side by side
};

enum class TopSort { kGpu, kPriority, kHeld, kP99, kLaunches, kInFlight, kMemory, kPid, kCommand };
inline constexpr TopSort kTopSorts[] = {TopSort::kGpu,    TopSort::kPriority, TopSort::kHeld,
                                        TopSort::kP99,    TopSort::kLaunches, TopSort::kInFlight,
                                        TopSort::kMemory, TopSort::kPid,      TopSort::kCommand};
// The column's name.
std::string_view Name(TopSort sort);

class TopModel {
 public:
  // Rates are averaged over this time, so that a number can be read before it changes.
  static constexpr std::uint64_t kRateNs = 3'000'000'000;

  void Add(v1::ListClientsResponse answer, DeviceMemory memory = {});
  void Add(const v1::Event& event) { holds_.Add(event); }
  // After a lost connection: the next answer has nothing to do with the previous ones.
  void Forget();

  bool IsEmpty() const { return answers_.empty(); }
  bool ObservesOnly() const { return !IsEmpty() && answers_.back().observes_only(); }
  std::string Policy() const { return IsEmpty() ? std::string() : answers_.back().policy(); }
  std::size_t Clients() const { return IsEmpty() ? 0 : static_cast<std::size_t>(answers_.back().clients_size()); }

  std::vector<TopDevice> Devices() const;
  // Rows whose pid, command, group, claim or a label of it, user, device or state contains `filter`, ignoring case.
  // Numbers are sorted descending, words and pids ascending, `reverse` the other way; unknown values come last; ties
  // are sorted by pid and device.
  std::vector<TopRow> Rows(TopSort sort, bool reverse, const std::string& filter) const;

 private:
  std::deque<v1::ListClientsResponse> answers_;  // oldest first
  DeviceMemory memory_;                          // the last one
  Holds holds_;
};

}  // namespace xschedd::ctl
