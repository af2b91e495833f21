// Accounts for the metrics of devices and classes of clients: totals since the daemon's start, and the present state.
//
// A client's class is what its rule says (`class`), else the band of its effective priority: "high" above 0, "normal"
// at 0, "low" below. Whatever clients do, there are at most kMaxMeteredDevices devices, kMaxClasses classes and
// kMaxAccounts pairs of the two; the rest goes to the device or class "other". A device without clients gives up its
// place when another needs it, and its totals move to "other".
//
// Totals are read from the clients' ledgers (Settle) for each count, and when a client changes class or leaves. So they
// cost a launch nothing and a transition one addition. Values from a ledger are limited to what is possible: a client
// can distort only its own class, and no counter goes back. Thread rule: the daemon's one thread.
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
#include "daemon/telemetry/claim_accounts.h"
#include "daemon/telemetry/histogram.h"

namespace xschedd {

inline constexpr std::string_view kOther = "other";

// The class of a client with these effective settings.
std::string_view ClassOf(const Effective& effective);

// One class on one device, at the last count.
struct Present {
  std::array<std::uint64_t, kPhases> clients{};  // by Phase
  // By mode: clients for which the daemon has measured when holding others helps.
  std::array<std::uint64_t, std::size(policy::kModeWords)> modes{};
  std::uint64_t in_flight = 0;
  std::uint64_t window_us = 0;  // the largest; 0: no client has one
  std::uint64_t longest_hold_ns = 0;
  std::uint64_t memory_bytes = 0;        // by the clients' own accounts
  std::uint64_t memory_limit_bytes = 0;  // the smallest; 0: no client has one
};

struct ClassAccount {
  std::uint32_t device = 0;  // index in Meter::Devices()
  std::uint32_t klass = 0;   // index in Meter::Classes()
  Usage total;
  TimeHistogram holds;
  Present present;
  Present counting;  // builds up during a count
  explicit ClassAccount(std::uint32_t device_in, std::uint32_t klass_in);
};

struct DeviceAccount {
  std::string id;
  std::string name;
  std::string vendor;
  std::string uuid;  // of the GPU, from its driver; empty: unknown
  bool has_clients = false;
  std::uint64_t decisions = 0;
  TimeHistogram latency;
  // GPU time per second, over all its clients; below 0: unknown, because some are untracked.
  double utilization = -1;
  double counting = -1;
  explicit DeviceAccount(std::string id_in);
};

class Meter {
 public:
  static constexpr std::size_t kMaxMeteredDevices = 64;
  static constexpr std::size_t kMaxClasses = 32;
  static constexpr std::size_t kMaxAccounts = 256;
  // More than any process can launch.
  static constexpr std::uint64_t kMaxLaunchesPerS = 10'000'000;
  static constexpr std::uint64_t kMaxInFlight = 65'536;

  Meter();
  // Called once for each new device, with its PCI address.
  void SetUuidOf(std::function<std::string(const std::string&)> uuid_of) { uuid_of_ = std::move(uuid_of); }

  // ---- as it happens
  void Attached(Attachment& attachment, std::uint64_t now_ns);
  void HoldEnded(Attachment& attachment, std::uint64_t held_ns);
  void Decided(Device& device) { ++devices_[PlaceOf(device)].decisions; }
  void DecidedAfter(Device& device, std::uint64_t latency_ns) { devices_[PlaceOf(device)].latency.Observe(latency_ns); }
  void SetTracked(Attachment& attachment, bool is_tracked, std::uint64_t now_ns);
  // Adds what the client did since the last time. Call it before the client's claim changes.
  void Settle(Client& client, std::uint64_t now_ns);
  // Call before a client changes class or leaves: what it did so far belongs to its present class.
  void Close(Client& client, std::uint64_t now_ns);
  // The last client of the device has left.
  void Gone(Device& device);

  // ---- a count of all clients, possibly in pieces: Begin, Count for each client, End
  void Begin();
  void Count(Client& client, std::uint64_t now_ns);
  void End();

  // The first is "other".
  const std::vector<DeviceAccount>& Devices() const { return devices_; }
  const std::vector<std::string>& Classes() const { return classes_; }
  // Unused ones have kNoAccount as device.
  const std::vector<ClassAccount>& Accounts() const { return accounts_; }
  // As of the last Settle or count of each client.
  ClaimAccounts& Claims() { return claims_; }
  const ClaimAccounts& Claims() const { return claims_; }

 private:
  void Settle(Attachment& attachment, std::uint64_t now_ns);
  void CountPresent(const Attachment& attachment, std::uint64_t now_ns);
  void CountMemory(const Attachment& attachment, Present& present);
  ClassAccount& AccountOf(Attachment& attachment);
  std::uint32_t FindAccount(std::uint32_t device, std::uint32_t klass);
  std::uint32_t PlaceOf(Device& device);
  std::uint32_t ClassPlace(std::string_view name);
  // Folds the totals of one device without clients into "other" to make room. False: all have clients.
  bool FoldOne();

  std::function<std::string(const std::string&)> uuid_of_;
  std::vector<DeviceAccount> devices_;
  std::vector<std::string> classes_;
  std::vector<ClassAccount> accounts_;
  ClaimAccounts claims_;
};

}  // namespace xschedd
