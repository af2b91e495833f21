// Writes sessions and operations to the log and the events: who connected and left, what changed, by whom and why.
// Lines that users cause are limited per user, so that one user's flood does not hide another's. Thread rule: the
// daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "daemon/actor.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/token_bucket.h"
#include "daemon/scheduler/events.h"
#include "daemon/telemetry/claim_accounts.h"
#include "daemon/telemetry/uid_lines.h"

namespace xschedd {

class Journal {
 public:
  // The limit that a line about a client counts against: its user's, or, if another line already says who did it (an
  // operation, a reload), the common one for details.
  enum class LinesOf { kItself, kOperation };

  explicit Journal(EventLog& events) : events_(events) {}

  // ---- one client
  void Connected(const Client& client);
  void Disconnected(const Client& client, const std::string& why);
  // After a restart: TakenOver when the client is in the registry again, Reconnected when it has a session again.
  static void TakenOver(const Client& client);
  void Reconnected(const Client& client);
  // Its group begins with what was learnt of `pid`, a process of the same command.
  void Recalled(const Client& client, policy::BenefitMemory::Mode answer, std::uint64_t pid);
  void Attached(const Attachment& attachment, std::uint64_t now_ns);
  // kQueueCreated, kQueueDestroyed
  void Queue(EventKind kind, const Client& client, std::uint64_t queue);
  // The client's effective settings were `before`. False: they are the same.
  bool Changed(const Client& client, const Effective& before, const std::string& why, LinesOf lines);
  void GroupChanged(const Client& client, const std::string& before);
  void Hold(const Client& client, bool hold, const Actor& by);
  // Allocations of device memory were refused, `count` since the last call about it.
  void MemoryRefused(const Attachment& attachment, std::uint64_t count);

  // ---- claims; `clients`: how many clients have it now
  void ClaimPut(const ClaimPtr& claim, bool is_new, std::size_t clients, const Actor& by);
  static void NoClaimSocket(const Claim& claim, const Error& error);
  void ClaimEnded(const ClaimAccount& account, std::size_t clients);

  // ---- what somebody did
  // One line for all `clients`, limited if a user caused it. `owner`: whose limit applies.
  void Operation(const std::string& what, const std::vector<Client*>& clients, const Actor& by, const Principal& owner);
  void PolicySet(const policy::Settings& settings, const Actor& by);
  static void PolicyRestored(const policy::Settings& settings);
  static void GuardIsOff();
  static void ObservesOnly();
  static void ReloadFailed(const Error& error);
  void Reloaded(const std::string& file, std::size_t clients_changed, std::size_t clients_moved, const Actor& by);
  void Disabled(const Actor& by);
  void Enabled(const Actor& by);
  void Refused(const Principal& owner, const std::string& why);

  std::uint64_t ClientLinesLeftOut() const { return client_lines_.LeftOutTotal(); }
  std::uint64_t RefusalLinesLeftOut() const { return refusal_lines_.LeftOutTotal(); }

 private:
  // Whether the limit allows a line. `note`: appended to the line.
  bool TakeLine(const Principal& owner, std::string* note);
  bool TakeDetail(LinesOf lines, const Client& client, std::string* note);

  void AddClaimEvent(const ClaimPtr& claim, const std::string& what);

  EventLog& events_;
  UidLines refusal_lines_{kRefusalLines};
  UidLines client_lines_{kClientLines};
  TokenBucket detail_lines_{kDetailLinesPerSecond, kDetailLinesBurst};
};

}  // namespace xschedd
