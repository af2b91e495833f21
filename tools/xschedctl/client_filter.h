// Decides which events concern the clients that a selector matches. For an unknown client it asks the daemon again, so
// that clients that connect later match, too; a client that has ended matches only by its pid. Thread rule: main
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
  std::set<std::uint64_t> fitting_;  // client ids
  std::uint64_t asked_ns_ = 0;       // by the daemon's clock
};

}  // namespace xschedd::ctl
