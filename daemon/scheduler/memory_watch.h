// Puts limits of device memory on the clients' boards, and follows what the clients count as allocated.
//
// A look at a device reads the ledgers of its clients that have a limit or a claim, and then writes what each may have:
// its own limit, or of a claim's limit what the claim's other clients have not counted there. Looks come once a second,
// and at once when a limit changes or a client attaches; never with a transition.
// Between two checks, the clients of a claim can together exceed its limit by what they allocate meanwhile. No client
// loses memory that it has.
//
// A client's account is a claim of its own: a wrong one changes only what the clients of its own claim may have.
// Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/registry/registry.h"
#include "daemon/telemetry/claim_accounts.h"

namespace xschedd {

class MemoryWatch {
 public:
  // `refused`: a client's allocations were refused, `count` since the last call for it; at most kMemoryLinesPerSecond
  // for each client.
  using Refused = std::function<void(const Attachment& attachment, std::uint64_t count)>;
  MemoryWatch(const Registry& registry, ClaimAccounts& accounts, Refused refused)
      : registry_(registry), accounts_(accounts), refused_(std::move(refused)) {}

  // False: no limit is in force. Takes effect with the next look.
  void SetEnforcing(bool enforces) { enforces_ = enforces; }
  // Whether there is something to look at for this client.
  static bool IsWatched(const Client& client);

  // The client's limit, before the daemon knows its devices: for all slots without one, as if it had no others in its
  // claim.
  void WriteUnattached(const Client& client) const;
  // The attachment is new, or was taken over from an earlier daemon: what was refused before the next look is not
  // reported. If the client has a limit, that look follows at once; else it comes before a limit does, and until then
  // the client's account is not read: the page of the ledger that it is in costs the daemon no memory.
  void Begin(Attachment& attachment);

  void LookAt(Device& device, std::uint64_t now_ns);
  void LookAtAll(std::uint64_t now_ns);
  // The same in pieces, so that it delays no decision: at the next devices. False: those were the last, and the next
  // call begins anew.
  bool LookAtNext(std::uint64_t now_ns);

 private:
  std::uint64_t LimitOf(const Client& client) const { return enforces_ ? client.effective.memory_limit : 0; }
  void Sample(Attachment& attachment, std::uint64_t now_ns);

  const Registry& registry_;
  ClaimAccounts& accounts_;
  Refused refused_;
  bool enforces_ = true;
  std::string looked_at_;  // the last device of LookAtNext; empty: it begins
};

}  // namespace xschedd
