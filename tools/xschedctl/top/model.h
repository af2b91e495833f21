// What `xschedctl top` shows, as numbers: the daemon's answers of the last seconds become rates. Pure, but for what it
// keeps. Thread rule: one user at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "admin.pb.h"
#include "tools/xschedctl/top/holds.h"

namespace xschedd::ctl {

// One client on one device; a client without a device has a row, too. What is not known is absent.
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
  std::optional<double> gpu;    // GPU time used, of the time
  std::optional<double> share;  // of what all clients of the device used
  std::optional<double> held;   // of the time
  std::optional<double> launches_s;
  std::optional<std::uint64_t> p99_hold_ns;
  std::uint32_t in_flight = 0;
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

enum class TopSort { kGpu, kPriority, kHeld, kP99, kLaunches, kInFlight, kPid, kCommand };
inline constexpr TopSort kTopSorts[] = {TopSort::kGpu,      TopSort::kPriority, TopSort::kHeld, TopSort::kP99,
                                        TopSort::kLaunches, TopSort::kInFlight, TopSort::kPid,  TopSort::kCommand};
// As the column is called.
std::string_view Name(TopSort sort);

class TopModel {
 public:
  // Over how much time rates are taken: a number that a person can read before it changes.
  static constexpr std::uint64_t kRateNs = 3'000'000'000;

  void Add(v1::ListClientsResponse answer);
  void Add(const v1::Event& event) { holds_.Add(event); }
  // The connection was lost: the next answer has nothing to do with those before.
  void Forget();

  bool IsEmpty() const { return answers_.empty(); }
  bool ObservesOnly() const { return !IsEmpty() && answers_.back().observes_only(); }
  std::string Policy() const { return IsEmpty() ? std::string() : answers_.back().policy(); }
  std::size_t Clients() const { return IsEmpty() ? 0 : static_cast<std::size_t>(answers_.back().clients_size()); }

  std::vector<TopDevice> Devices() const;
  // Those whose pid, command, group, user or state has `filter` in it, case aside. Numbers are sorted downwards, words
  // and pids upwards, `reverse` the other way; what is not known goes last; equals by pid and device.
  std::vector<TopRow> Rows(TopSort sort, bool reverse, const std::string& filter) const;

 private:
  std::deque<v1::ListClientsResponse> answers_;  // oldest first
  Holds holds_;
};

}  // namespace xschedd::ctl
