// Descriptors that outlive the daemon: the service manager keeps them, by name, for the next one.
//
//   state        the saved state (daemon/state)
//   channel-N    one client's memory: board, ledger, eventfd
//
// N is the client's id, which is never reused. The saved state and the store are written one after the other; whichever
// is behind, a channel is never found under another client's id. A service manager takes at most FileDescriptorStoreMax
// descriptors and does not say when it is full, so they are counted here. Thread rule: the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/registry/channel.h"
#include "daemon/service_manager/service_manager.h"

namespace xschedd {

class DescriptorStore {
 public:
  static constexpr char kStateName[] = "state";
  static constexpr std::size_t kChannelDescriptors = 3;
  // The unit's FileDescriptorStoreMax, if the service manager does not report it ($FDSTORE, systemd 254): the state and
  // the memory of 2,048 clients.
  static constexpr std::size_t kDefaultMax = 1 + 2048 * kChannelDescriptors;

  explicit DescriptorStore(ServiceManager& manager);

  // False: nothing outlives this daemon.
  bool IsPresent() const { return max_ > 1; }
  bool HasRoom() const { return IsPresent() && used_ + kChannelDescriptors <= max_ - 1; }

  void StoreState(int fd);
  void RemoveState();
  // `number` must not be stored yet. False: no room, or no descriptor left. The caller keeps its descriptors.
  bool StoreChannel(std::uint64_t number, const Channel& channel);
  void RemoveChannel(std::uint64_t number);

  struct Stored {
    std::vector<UniqueFd> states;
    std::map<std::uint64_t, std::vector<UniqueFd>> channels;
  };
  // Sorts what an earlier daemon stored, which stays in the store. A descriptor with an unknown name is logged, closed
  // and removed from the store.
  Stored Take(std::vector<PassedDescriptor> passed);

 private:
  ServiceManager& manager_;
  std::size_t max_ = 0;
  std::size_t used_ = 0;                           // by channels
  std::map<std::uint64_t, std::size_t> channels_;  // descriptors by number
};

}  // namespace xschedd
