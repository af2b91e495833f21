#include "daemon/telemetry/claim_accounts.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace xschedd {

void ClaimAccounts::Put(const ClaimPtr& claim, std::uint64_t unix_ms) {
  ClaimAccount& account = accounts_[claim->id];
  if (account.claim == nullptr) account.began_unix_ms = unix_ms;
  account.claim = claim;
}

void ClaimAccounts::Add(const Claim& claim, const Usage& usage) {
  const auto found = accounts_.find(claim.id);
  if (found == accounts_.end() || found->second.end_order != 0) return;
  AddUsage(usage, found->second.usage);
  changed_.insert(claim.id);
}

std::uint64_t ClaimAccounts::End(const Claim& claim, const std::string& why, std::uint64_t unix_ms) {
  const auto found = accounts_.find(claim.id);
  if (found == accounts_.end() || found->second.end_order != 0) return 0;
  ClaimAccount& account = found->second;
  account.ended_unix_ms = unix_ms;
  account.end_order = ended_.empty() ? 1 : ended_.rbegin()->first + 1;
  account.end_reason = why.substr(0, kMaxEndReasonBytes);
  ended_.emplace(account.end_order, claim.id);
  if (ended_.size() <= kMaxEndedClaims) return 0;
  const std::uint64_t oldest = ended_.begin()->second;
  ended_.erase(ended_.begin());
  accounts_.erase(oldest);
  changed_.erase(oldest);
  return oldest;
}

void ClaimAccounts::Restore(ClaimAccount account) {
  const std::uint64_t id = account.claim->id;
  const bool has_ended = account.end_order != 0;
  if (has_ended && (ended_.size() >= kMaxEndedClaims || ended_.contains(account.end_order))) return;
  const auto [place, is_new] = accounts_.try_emplace(id, std::move(account));
  if (is_new && has_ended) ended_.emplace(place->second.end_order, id);
}

const ClaimAccount* ClaimAccounts::Find(std::uint64_t claim) const {
  const auto found = accounts_.find(claim);
  return found == accounts_.end() ? nullptr : &found->second;
}

std::vector<const ClaimAccount*> ClaimAccounts::Sorted(const std::string& name) const {
  std::vector<const ClaimAccount*> sorted;
  for (const auto& [id, account] : accounts_)
    if (name.empty() || account.claim->name == name) sorted.push_back(&account);
  std::sort(sorted.begin(), sorted.end(), [](const ClaimAccount* a, const ClaimAccount* b) {
    const auto key = [](const ClaimAccount* of) {
      return std::tuple(of->end_order != 0, ~of->end_order, of->claim->name);
    };
    return key(a) < key(b);
  });
  return sorted;
}

std::set<std::uint64_t> ClaimAccounts::TakeChanged() {
  return std::exchange(changed_, {});
}

}  // namespace xschedd
