#include "daemon/registry/past_clients.h"

#include <algorithm>
#include <utility>

namespace xschedd {

void PastClients::Keep(Client& client, HistoryPool& pool, std::uint64_t now_ns) {
  if (client.attachments.empty()) return;  // there is nothing to ask about
  PastClient past{client.identity,
                  client.principal,
                  client.effective,
                  now_ns,
                  client.passed,
                  client.group->memory.benefit->settled,
                  {}};
  past.devices.reserve(client.attachments.size());
  for (const auto& [slot, attachment] : client.attachments) {
    const Moment moment = attachment->MomentAt(now_ns);
    attachment->history.End(pool, moment);
    past.devices.push_back({attachment->device->shared_address, std::move(attachment->history), moment.gpu_ns});
  }
  if (clients_.size() == kClients) clients_.pop_back();
  clients_.push_front(std::move(past));
}

const PastClient* PastClients::Find(std::uint64_t pid) const {
  const auto found = std::find_if(clients_.begin(), clients_.end(),
                                  [pid](const PastClient& client) { return client.identity.pid == pid; });
  return found == clients_.end() ? nullptr : &*found;
}

const PastClient* PastClients::FindSame(const Program& program) const {
  const auto found = std::find_if(clients_.begin(), clients_.end(), [&program](const PastClient& past) {
    return IsSame(program, {past.identity, past.principal, past.effective.claim});
  });
  return found == clients_.end() ? nullptr : &*found;
}

}  // namespace xschedd
