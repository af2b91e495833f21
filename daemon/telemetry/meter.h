// What the metrics say of devices and of classes of clients: totals since the daemon's start, and what is so at
// present.
//
// A client's class is what the rule that fits it says (`class`), else the band of its effective priority: "high" above
// 0, "normal" at 0, "low" below. Whatever clients do, there are at most kMostDevices devices, kMostClasses classes and
// kMostAccounts pairs of the two. What does not fit is in the device, or the class, "other". A device without clients
// gives its place up when another one needs it; its totals are then in "other".
//
// Totals are taken from the clients' ledgers when somebody wants to know (Settle), and when a client changes its class
// or leaves; so they cost a launch nothing, and a transition one addition. What a ledger says is limited to what is
// possible: a client can spoil no more than its own class, and no counter goes back. Thread rule: the daemon's one
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/policy/benefit.h"
#include "daemon/registry/registry.h"
#include "daemon/telemetry/histogram.h"

namespace xschedd {

inline constexpr std::string_view kOther = "other";

// The class of a client for which `effective` counts.
std::string_view ClassOf(const Effective& effective);

// Of one class on one device, at the time of the last count.
struct Present {
  std::array<std::uint64_t, kPhases> clients{};  // by Phase
  // Clients for whom the daemon has found out when others should be held, by mode.
  std::array<std::uint64_t, std::size(policy::kModeWords)> modes{};
  std::uint64_t in_flight = 0;
  std::uint64_t window_us = 0;  // the largest; 0: nobody has one
  std::uint64_t longest_hold_ns = 0;
};

struct ClassAccount {
  std::uint32_t device = 0;  // place among Meter::Devices()
  std::uint32_t klass = 0;   // place among Meter::Classes()
  Usage total;
  TimeHistogram holds;
  Present present;
  Present counting;  // while clients are being counted
  explicit ClassAccount(std::uint32_t device_in, std::uint32_t klass_in);
};

struct DeviceAccount {
  std::string id;
  std::string name;
  std::string vendor;
  std::string uuid;  // of the GPU, as its driver has it; empty: not known
  bool has_clients = false;
  std::uint64_t decisions = 0;
  TimeHistogram latency;
  // GPU time in a second, of all its clients; below 0: some are untracked, and nobody knows.
  double utilization = -1;
  double counting = -1;
  explicit DeviceAccount(std::string id_in);
};

class Meter {
 public:
  static constexpr std::size_t kMostDevices = 64;
  static constexpr std::size_t kMostClasses = 32;
  static constexpr std::size_t kMostAccounts = 256;
  // More than any process launches.
  static constexpr std::uint64_t kMostLaunchesPerS = 10'000'000;
  static constexpr std::uint64_t kMostInFlight = 65'536;

  Meter();
  // Asked once of each device that comes, by its PCI address.
  void SetUuidOf(std::function<std::string(const std::string&)> uuid_of) { uuid_of_ = std::move(uuid_of); }

  // ---- as it happens
  void Attached(Attachment& attachment, std::uint64_t now_ns);
  void HoldEnded(Attachment& attachment, std::uint64_t held_ns);
  void Decided(Device& device) { ++devices_[PlaceOf(device)].decisions; }
  void DecidedAfter(Device& device, std::uint64_t latency_ns) { devices_[PlaceOf(device)].latency.Observe(latency_ns); }
  // Before the client's class changes, and before it leaves: what it did until now belongs to its present class.
  void Close(Client& client, std::uint64_t now_ns);
  // The last client of the device leaves.
  void Gone(Device& device);

  // ---- a count of all clients, which may be spread over some time: Begin, Count for each client, End
  void Begin();
  void Count(Client& client, std::uint64_t now_ns);
  void End();

  // The first is "other".
  const std::vector<DeviceAccount>& Devices() const { return devices_; }
  const std::vector<std::string>& Classes() const { return classes_; }
  // Those whose device is kNoAccount are not in use.
  const std::vector<ClassAccount>& Accounts() const { return accounts_; }

 private:
  void Settle(Attachment& attachment, std::uint64_t now_ns);
  void CountPresent(const Attachment& attachment, std::uint64_t now_ns);
  ClassAccount& AccountOf(Attachment& attachment);
  std::uint32_t FindAccount(std::uint32_t device, std::uint32_t klass);
  std::uint32_t PlaceOf(Device& device);
  std::uint32_t ClassPlace(std::string_view name);
  // Makes room: the totals of a device without clients go to "other". False: all have clients.
  bool FoldOne();

  std::function<std::string(const std::string&)> uuid_of_;
  std::vector<DeviceAccount> devices_;
  std::vector<std::string> classes_;
  std::vector<ClassAccount> accounts_;
};

}  // namespace xschedd
