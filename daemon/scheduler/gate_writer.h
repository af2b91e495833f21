// Puts gates into force: writes them to the clients' boards, renews leases and wakes waiting clients. With enforcement
// off, gates hold no client and limit nothing; everything else is written as usual. Thread rule: the daemon's one
// thread.
#pragma once

#include <cstdint>

#include "common/board.h"
#include "daemon/registry/client.h"
#include "daemon/scheduler/counts.h"

namespace xschedd {

class GateWriter {
 public:
  explicit GateWriter(SchedulerCounts& counts) : counts_(counts) {}

  bool Enforces() const { return enforces_; }
  // Takes effect with the next Write or Align.
  void SetEnforcing(bool enforces) { enforces_ = enforces; }
  void SetLease(std::uint64_t lease_ns) { lease_ns_ = lease_ns; }
  std::uint64_t LeaseNs() const { return lease_ns_; }

  // Before Write, for many (BoardWriter::Prefetch).
  static void Prefetch(Attachment& attachment) { attachment.client->channel->Board().Prefetch(attachment.slot); }
  // Makes `gate` the attachment's.
  void Write(Attachment& attachment, const policy::Gate& gate, std::uint64_t now_ns);
  // Writes every slot of the client's board: its attachments' gates, and open gates everywhere else.
  void Align(Client& client);
  // False: none of its gates needs one.
  bool RenewLease(Client& client, std::uint64_t now_ns) const;

 private:
  GateSetting SettingOf(const policy::Gate& gate) const;
  void CountBinding(Client& client, bool bound, bool binds, std::uint64_t now_ns) const;

  SchedulerCounts& counts_;
  std::uint64_t lease_ns_ = 100 * policy::kNsPerMs;
  bool enforces_ = true;
};

}  // namespace xschedd
