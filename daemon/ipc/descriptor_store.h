// What of the daemon outlives it: descriptors that the service manager keeps for the next one, by name.
//
//   state        the saved state (daemon/state)
//   channel-N    one client's memory: board, ledger, eventfd
//
// N is the smallest that is free: all names together, as the next daemon gets them in one environment variable, must
// stay below 128 KiB. A service manager takes no more than FileDescriptorStoreMax and does not say when it is full, so
// that is counted here. Thread rule: the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/ipc/service_manager.h"
#include "daemon/registry/channel.h"

namespace xschedd {

class DescriptorStore {
 public:
  static constexpr char kStateName[] = "state";
  static constexpr std::size_t kChannelDescriptors = 3;
  // FileDescriptorStoreMax of the unit, where the service manager does not say it itself ($FDSTORE, systemd 254): the
  // state, and the memory of 2,048 clients.
  static constexpr std::size_t kDefaultMax = 1 + 2048 * kChannelDescriptors;

  explicit DescriptorStore(ServiceManager& manager);

  // False: nothing outlives this daemon.
  bool IsPresent() const { return max_ > 1; }
  bool HasRoom() const { return IsPresent() && used_ + kChannelDescriptors <= max_ - 1; }

  void StoreState(int fd);
  void RemoveState();
  // The channel's number; none: there is no room, or no descriptor left. The descriptors stay the caller's.
  std::optional<std::uint32_t> StoreChannel(const Channel& channel);
  void RemoveChannel(std::uint32_t number);

  struct Stored {
    std::vector<UniqueFd> states;
    std::map<std::uint32_t, std::vector<UniqueFd>> channels;
  };
  // What an earlier daemon stored; it stays in the store, under its number. What has another name is closed and told.
  Stored Take(std::vector<PassedDescriptor> passed);

 private:
  ServiceManager& manager_;
  std::size_t max_ = 0;
  std::size_t used_ = 0;                           // by channels
  std::map<std::uint32_t, std::size_t> channels_;  // number, and how many descriptors it has
};

}  // namespace xschedd
