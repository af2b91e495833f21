// Core's part in claims (registry/claim.h): a claim that is put or ends takes effect on its clients at once.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <unordered_set>
#include <utility>

#include "common/clock.h"
#include "daemon/core.h"

namespace xschedd {
namespace {

// A claim may end this long after its cgroup, in which nobody is left.
constexpr std::uint64_t kCheckNs = policy::kNsPerS;
// How much usage a daemon that is killed may lose, on a node where one check reaches all clients.
constexpr std::uint64_t kSaveAccountsNs = 5 * policy::kNsPerS;
// Ledgers read per check; limited, so that it delays no decision.
constexpr std::size_t kLedgersPerCheck = 128;

}  // namespace

ClaimPtr Core::ClaimOf(std::uint64_t claim_socket, const std::string& cgroup, const CgroupLineage& lineage) const {
  // Even if that claim has ended: no other claim applies then.
  if (claim_socket != 0) return claims_.FindId(claim_socket);
  return claims_.Match(cgroup, lineage);
}

ClaimPtr Core::ClaimOf(const Client& client) const {
  const ClientIdentity& who = client.identity;
  return ClaimOf(who.claim_socket, who.cgroup, who.cgroup_lineage);
}

Origin Core::OriginOf(const PeerIdentity& peer, std::uint64_t claim_socket) const {
  ProcessInfo process = ReadProcess(peer.pid, peer.pidfd.Get());
  CgroupLineage lineage = LineageOfProcess(process.cgroup, process.is_cgroup_exact);
  return {std::move(process.cgroup), std::move(lineage), std::move(process.place), claim_socket};
}

ClaimPtr Core::ClaimOf(const Origin& origin) const {
  return ClaimOf(origin.claim_socket, origin.cgroup, origin.lineage);
}

CgroupLineage Core::LineageOfProcess(const std::string& cgroup, bool is_exact) const {
  return is_exact ? LineageOf(cgroup, cgroups_) : CgroupLineage();
}

void Core::Identify(ClientIdentity& identity) const {
  identity.owner = OwnerOf(identity.uid);
  identity.cgroup_lineage = LineageOfProcess(identity.cgroup, identity.is_cgroup_exact);
}

Result<Core::PutClaimResult> Core::PutClaim(Claim claim, const Actor& by, bool dry_run) {
  auto put = claims_.Add(claim, cgroups_, MonotonicNs(), true);
  if (!put) return tl::unexpected(put.error());
  if (!dry_run && claim_sockets_.open && put->claim->has_socket) {
    if (const auto opened = claim_sockets_.open(*put->claim); !opened) return tl::unexpected(opened.error());
  }
  if (!dry_run) put = claims_.Add(std::move(claim), cgroups_, MonotonicNs());
  if (!dry_run && claim_sockets_.close && !put->claim->has_socket) claim_sockets_.close(*put->claim);
  if (dry_run) return PutClaimResult{put->claim, put->is_new};
  Metrics().Claims().Put(put->claim, UnixMs());
  ApplyClaims(ClaimText(*put->claim) + " was put " + Text(by));
  if (put->is_changed) journal_.ClaimPut(put->claim, put->is_new, ClientsOf(*put->claim), by);
  NoteClaim(put->claim->id, Urgency::kNow);
  ArmCheckTimer();
  return PutClaimResult{put->claim, put->is_new};
}

ClaimPtr Core::DeleteClaim(const std::string& name, const Actor& by) {
  ClaimPtr removed = claims_.Remove(name);
  if (removed != nullptr) EndClaims({removed}, "removed " + Text(by), Urgency::kNow);
  return removed;
}

void Core::EndClaims(const std::vector<ClaimPtr>& ended, const std::string& why, Urgency urgency) {
  if (ended.empty()) return;
  const std::uint64_t now = MonotonicNs();
  // Clients whose claim is no longer in the table.
  for (const auto& [id, client] : registry_.Clients())
    if (client->claim != nullptr && claims_.FindId(client->claim->id) == nullptr) Metrics().Settle(*client, now);
  for (const ClaimPtr& claim : ended) {
    EndAccount(*claim, why);
    NoteClaim(claim->id, urgency);
    if (claim_sockets_.close) claim_sockets_.close(*claim);
  }
  ApplyClaims((ended.size() == 1 ? ClaimText(*ended.front()) : std::string("its claim")) + " has ended: " + why);
}

void Core::EndAccount(const Claim& claim, const std::string& why) {
  const std::uint64_t forgotten = Metrics().Claims().End(claim, why, UnixMs());
  if (forgotten != 0) NoteClaim(forgotten, Urgency::kSoon);
  if (const ClaimAccount* const account = Accounts().Find(claim.id)) journal_.ClaimEnded(*account, ClientsOf(claim));
}

const ClaimAccounts& Core::SettledAccounts() {
  const std::uint64_t now = MonotonicNs();
  for (const auto& [id, client] : registry_.Clients())
    if (client->claim != nullptr) Metrics().Settle(*client, now);
  return Accounts();
}

void Core::AccountForClaims(std::uint64_t now_ns) {
  std::size_t read = 0;
  const auto& clients = registry_.Clients();
  for (std::size_t i = 0; i < clients.size() && read < kLedgersPerCheck; ++i) {
    auto next = clients.upper_bound(accounted_client_);
    if (next == clients.end()) next = clients.begin();
    accounted_client_ = next->first;
    if (next->second->claim == nullptr) continue;
    Metrics().Settle(*next->second, now_ns);
    read += next->second->attachments.size();
  }
  if (now_ns - accounts_saved_ns_ < kSaveAccountsNs) return;
  accounts_saved_ns_ = now_ns;
  for (const std::uint64_t claim : Metrics().Claims().TakeChanged())
    NoteClaim(claim, Urgency::kSoon);
}

void Core::EndStaleClaims(std::uint64_t now_ns) {
  EndClaims(claims_.RemoveExpired(now_ns), "its time ran out, and it was not put again", Urgency::kSoon);
  EndClaims(claims_.RemoveGone(cgroups_), "its cgroup is gone", Urgency::kSoon);
}

void Core::ArmCheckTimer() {
  const auto& clients = registry_.Clients();
  const bool is_memory_watched = std::any_of(clients.begin(), clients.end(),
                                             [](const auto& entry) { return MemoryWatch::IsWatched(*entry.second); });
  if ((claims_.All().empty() && !is_memory_watched) || is_stopped_) return;
  const std::uint64_t now = MonotonicNs();
  const std::uint64_t expiry = claims_.NextExpiryNs();
  const std::uint64_t due = std::min(now + kCheckNs, expiry == 0 ? now + kCheckNs : std::max(now, expiry));
  // Claims that are put all the time must not postpone it.
  if (check_due_ns_ != 0 && check_due_ns_ <= due) return;
  check_due_ns_ = due;
  check_timer_.expires_after(std::chrono::nanoseconds(due - now));
  check_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    check_due_ns_ = 0;
    const std::uint64_t checked = MonotonicNs();
    EndStaleClaims(checked);
    AccountForClaims(checked);
    CheckMemory();
    ArmCheckTimer();
  });
}

std::size_t Core::ClientsOf(const Claim& claim) const {
  std::size_t count = 0;
  for (const auto& [id, client] : registry_.Clients())
    count += client->claim != nullptr && client->claim->id == claim.id ? 1 : 0;
  return count;
}

void Core::ApplyClaims(const std::string& why) {
  const std::uint64_t now = MonotonicNs();
  std::vector<Client*> affected;
  for (const auto& [id, client] : registry_.Clients()) {
    ClaimPtr claim = ClaimOf(*client);
    if (claim == client->claim) continue;
    // What it did so far counts for the claim that it had.
    Metrics().Settle(*client, now);
    SetClaim(*client, std::move(claim));
    client->own = EffectiveOf(*client, config_);
    affected.push_back(client.get());
  }
  if (affected.empty()) return;
  are_memory_limits_changed_ = true;  // also of the same limit, another part may be left
  for (Client* client : affected)
    UpdateGroup(*client);
  std::unordered_set<const Group*> groups;
  for (const Client* client : affected)
    if (groups.insert(client->group).second) UpdateMembers(*client->group, why);
  DecideNow();
}

bool Core::RestoreClaim(Claim claim, ClaimAccount account) {
  const std::uint64_t id = claim.id;
  if (Check(claim) && id != 0) {
    if (account.began_unix_ms == 0) account.began_unix_ms = UnixMs();  // an earlier release did not save it
    account.claim = std::make_shared<const Claim>(claim);
    Metrics().Claims().Restore(std::move(account));
  }
  const bool is_restored = claims_.Restore(std::move(claim), cgroups_, MonotonicNs());
  if (const ClaimPtr restored = claims_.FindId(id); is_restored && restored->has_socket && claim_sockets_.open) {
    if (const auto opened = claim_sockets_.open(*restored); !opened) journal_.NoClaimSocket(*restored, opened.error());
  }
  if (is_restored && claims_.All().size() == 1) ArmCheckTimer();
  if (const ClaimAccount* const known = Accounts().Find(id); known != nullptr && claims_.FindId(id) == nullptr)
    EndAccount(*ClaimPtr(known->claim), "its time ran out, or its cgroup disappeared, while no daemon ran");
  return is_restored;
}

void Core::RestoreEndedClaim(ClaimAccount account) {
  claims_.Reserve(account.claim->id);
  Metrics().Claims().Restore(std::move(account));
}

}  // namespace xschedd
