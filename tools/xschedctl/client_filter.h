// Which events are about the clients that a selector means. Who they are is asked of the daemon when one is not known
// yet, so that clients that connect later count, too; of one that has ended only its pid is known. Thread rule: main
// thread.
#pragma once

#include <cstdint>
#include <set>

#include "tools/xschedctl/admin_client.h"

namespace xschedd::ctl {

class ClientFilter {
 public:
  // `client` outlives it.
  ClientFilter(AdminClient& client, v1::Selector selector) : client_(client), selector_(std::move(selector)) {}

  bool Fits(const v1::Event& event);

 private:
  bool IsByPidAlone() const;

  AdminClient& client_;
  v1::Selector selector_;
  std::set<std::uint64_t> fitting_;  // by the daemon's number
  std::uint64_t asked_ns_ = 0;       // by the daemon's clock
};

}  // namespace xschedd::ctl
