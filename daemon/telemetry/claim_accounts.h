// What the clients of each claim have used, while it lasts and after its end: for `claim report`, the log and metrics.
//
// The meter adds a client's usage to the account of the claim that the client has at that time. The last
// kMaxEndedClaims ended claims are kept; the oldest is forgotten first.
//
// In metrics, at most kClaimSeries claims have a series of their own; the usage of all others is one sum, the rest. A
// claim gets a series when it is first put, if there is room, or once it has used more than twice the GPU time of the
// claim with the least, whose place it takes. It keeps the series until another takes its place, or for kSeriesKeptMs
// after its end, so that its last value is read. Usage is never moved from one sum to another, so no counter goes back,
// and a name that is used again continues its series. Thread rule: the daemon's one thread.
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
inline constexpr std::size_t kClaimSeries = 20;
inline constexpr std::uint64_t kSeriesKeptMs = std::uint64_t{5} * 60 * 1'000;

struct ClaimAccount {
  ClaimPtr claim;  // as last put
  Usage usage;
  std::uint64_t began_unix_ms = 0;
  std::uint64_t ended_unix_ms = 0;
  std::uint64_t end_order = 0;  // grows from one end to the next; 0: the claim lasts
  std::string end_reason;
  std::uint64_t memory_peak_bytes = 0;  // the most that its clients had together on one device, at any look
  Usage in_series;  // the part that was used while the claim, or an earlier one of its name, had a series
};

class ClaimAccounts {
 public:
  // By the claim's id.
  using Accounts = std::map<std::uint64_t, ClaimAccount>;

  // A claim was put, or put again.
  void Put(const ClaimPtr& claim, std::uint64_t unix_ms);
  void Add(const Claim& claim, const Usage& usage);
  // By the claim's id: its clients have counted so much together on one device.
  void NoteMemory(std::uint64_t claim, std::uint64_t bytes);
  // Returns the id of the ended claim that was forgotten for this one; 0: none was.
  std::uint64_t End(const Claim& claim, const std::string& why, std::uint64_t unix_ms);
  // Adds an account that was saved before a restart. Does nothing if its claim has one already.
  void Restore(ClaimAccount account);

  // ---- a count of all clients, as in Meter
  void BeginCount() { counting_.clear(); }
  // A client of the claim has so much device memory on this device (its place in Meter::Devices()).
  void CountMemory(std::uint64_t claim, std::uint32_t device, std::uint64_t bytes) {
    counting_[claim][device] += bytes;
  }
  void EndCount();
  // At the last count: of all clients of the claim together, on the device where that is most.
  std::uint64_t MemoryBytes(std::uint64_t claim) const;

  // Null: none is kept.
  const ClaimAccount* Find(std::uint64_t claim) const;
  const Accounts& All() const { return accounts_; }
  // Current claims by name, then the ended ones, the latest first. `name`: only those with this name; empty: all.
  std::vector<const ClaimAccount*> Sorted(const std::string& name) const;
  // The claims whose usage has grown since the last call.
  std::set<std::uint64_t> TakeChanged();

  // Decides which claims have a series from now on.
  void ChooseSeries(std::uint64_t unix_ms);
  // The claims that have one, and the usage of all others.
  const std::set<std::uint64_t>& Series() const { return series_; }
  const Usage& Rest() const { return rest_; }
  // Whether there has been a claim.
  bool IsUsed() const { return is_used_; }

 private:
  // Among current claims: the one with a series and the least GPU time, and the one without a series and the most;
  // null: there is none.
  ClaimAccount* Least();
  ClaimAccount* Most();
  bool HasSeries(const std::string& name) const;
  void BeginSeries(ClaimAccount& account);

  Accounts accounts_;
  std::map<std::uint64_t, std::uint64_t> ended_;  // claims by ClaimAccount::end_order
  std::set<std::uint64_t> changed_;
  std::set<std::uint64_t> series_;
  Usage rest_;
  std::map<std::uint64_t, std::map<std::uint32_t, std::uint64_t>> counting_;  // by claim and device
  std::map<std::uint64_t, std::uint64_t> memory_bytes_;                       // by claim
  bool is_used_ = false;
};

}  // namespace xschedd
