#include "daemon/telemetry/claim_accounts.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace xschedd {

void ClaimAccounts::Put(const ClaimPtr& claim, std::uint64_t unix_ms) {
  ClaimAccount& account = accounts_[claim->id];
  const bool is_new = account.claim == nullptr;
  if (is_new) account.began_unix_ms = unix_ms;
  account.claim = claim;
  is_used_ = true;
  if (is_new && (series_.size() < kClaimSeries || HasSeries(claim->name))) BeginSeries(account);
}

void ClaimAccounts::Add(const Claim& claim, const Usage& usage) {
  const auto found = accounts_.find(claim.id);
  if (found == accounts_.end() || found->second.end_order != 0) return;
  AddUsage(usage, found->second.usage);
  AddUsage(usage, series_.contains(claim.id) ? found->second.in_series : rest_);
  changed_.insert(claim.id);
}

void ClaimAccounts::NoteMemory(std::uint64_t claim, std::uint64_t bytes) {
  const auto found = accounts_.find(claim);
  if (found == accounts_.end() || found->second.end_order != 0 || bytes <= found->second.memory_peak_bytes) return;
  found->second.memory_peak_bytes = bytes;
  changed_.insert(claim);
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
  series_.erase(oldest);
  changed_.erase(oldest);
  return oldest;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): clang-tidy 14 does not see that try_emplace moves it
void ClaimAccounts::Restore(ClaimAccount account) {
  const std::uint64_t id = account.claim->id;
  const bool has_ended = account.end_order != 0;
  if (has_ended && (ended_.size() >= kMaxEndedClaims || ended_.contains(account.end_order))) return;
  const auto [place, is_new] = accounts_.try_emplace(id, std::move(account));
  if (is_new && has_ended) ended_.emplace(place->second.end_order, id);
  if (!is_new || has_ended) return;
  is_used_ = true;
  if (series_.size() < kClaimSeries) BeginSeries(place->second);
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

bool ClaimAccounts::HasSeries(const std::string& name) const {
  return std::any_of(series_.begin(), series_.end(),
                     [&](std::uint64_t id) { return accounts_.at(id).claim->name == name; });
}

void ClaimAccounts::BeginSeries(ClaimAccount& account) {
  const bool is_first = account.in_series == Usage();
  for (const auto& [id, earlier] : accounts_) {
    if (id == account.claim->id || earlier.claim->name != account.claim->name) continue;
    series_.erase(id);
    // In order of id: each claim with the name continues the one before, so the last one with a series has it all.
    if (is_first && earlier.in_series != Usage()) account.in_series = earlier.in_series;
  }
  series_.insert(account.claim->id);
}

ClaimAccount* ClaimAccounts::Least() {
  ClaimAccount* least = nullptr;
  for (const std::uint64_t id : series_) {
    ClaimAccount& account = accounts_.at(id);
    if (account.end_order != 0) continue;
    if (least == nullptr || account.usage.gpu_ns < least->usage.gpu_ns) least = &account;
  }
  return least;
}

ClaimAccount* ClaimAccounts::Most() {
  ClaimAccount* most = nullptr;
  for (auto& [id, account] : accounts_) {
    if (account.end_order != 0 || series_.contains(id)) continue;
    if (most == nullptr || account.usage.gpu_ns > most->usage.gpu_ns) most = &account;
  }
  return most;
}

void ClaimAccounts::ChooseSeries(std::uint64_t unix_ms) {
  std::erase_if(series_, [&](std::uint64_t id) {
    const ClaimAccount& account = accounts_.at(id);
    return account.end_order != 0 && unix_ms >= account.ended_unix_ms + kSeriesKeptMs;
  });
  for (std::size_t i = 0; i < kClaimSeries; ++i) {
    ClaimAccount* const most = Most();
    if (most == nullptr) return;
    if (series_.size() >= kClaimSeries) {
      const ClaimAccount* const least = Least();
      if (least == nullptr || most->usage.gpu_ns <= 2 * least->usage.gpu_ns) return;
      series_.erase(least->claim->id);
    }
    BeginSeries(*most);
  }
}

void ClaimAccounts::EndCount() {
  memory_bytes_.clear();
  for (const auto& [claim, by_device] : counting_) {
    for (const auto& [device, bytes] : by_device)
      memory_bytes_[claim] = std::max(memory_bytes_[claim], bytes);
  }
}

std::uint64_t ClaimAccounts::MemoryBytes(std::uint64_t claim) const {
  const auto found = memory_bytes_.find(claim);
  return found == memory_bytes_.end() ? 0 : found->second;
}

std::set<std::uint64_t> ClaimAccounts::TakeChanged() {
  return std::exchange(changed_, {});
}

}  // namespace xschedd
