// One call to the daemon, over a connection of its own. Thread rule: main thread.
#pragma once

#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/commands.h"

namespace xschedd::ctl {

// Returns what AdminClient::Call returns for this request, an Outcome, or why there is no connection.
template <typename Request>
auto AskDaemon(const GlobalOptions& global, const Request& request) {
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  using Answer = decltype(client->Call(request));
  return client ? client->Call(request) : Answer(tl::unexpected<Failure>(client.error()));
}

}  // namespace xschedd::ctl
