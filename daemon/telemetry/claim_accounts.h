// What the clients of each claim have used, while it lasts and after its end: for `claim report` and the log.
//
// The meter adds what it settles for a client to the account of the claim that the client has then. Of claims that have
// ended the last kMaxEndedClaims are kept; the oldest is forgotten first. Thread rule: the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/registry/claim.h"
#include "daemon/registry/metered.h"

namespace xschedd {

inline constexpr std::size_t kMaxEndedClaims = 1'024;
inline constexpr std::size_t kMaxEndReasonBytes = 128;

struct ClaimAccount {
  ClaimPtr claim;  // as last put
  Usage usage;
  std::uint64_t began_unix_ms = 0;
  std::uint64_t ended_unix_ms = 0;
  std::uint64_t end_order = 0;  // grows from one end to the next; 0: the claim lasts
  std::string end_reason;
};

class ClaimAccounts {
 public:
  // By the claim's id.
  using Accounts = std::map<std::uint64_t, ClaimAccount>;

  // A claim was put, perhaps again.
  void Put(const ClaimPtr& claim, std::uint64_t unix_ms);
  void Add(const Claim& claim, const Usage& usage);
  // Returns the id of the ended claim that was forgotten for this one; 0: none was.
  std::uint64_t End(const Claim& claim, const std::string& why, std::uint64_t unix_ms);
  // One that was saved before a restart. Does nothing where its claim is known.
  void Restore(ClaimAccount account);

  // Null: none is kept.
  const ClaimAccount* Find(std::uint64_t claim) const;
  const Accounts& All() const { return accounts_; }
  // Those that last by name, then the ended ones, the latest first. `name`: only these; empty: all.
  std::vector<const ClaimAccount*> Sorted(const std::string& name) const;
  // The claims to which something was added since the last call.
  std::set<std::uint64_t> TakeChanged();

 private:
  Accounts accounts_;
  std::map<std::uint64_t, std::uint64_t> ended_;  // claims by ClaimAccount::end_order
  std::set<std::uint64_t> changed_;
};

}  // namespace xschedd
