// Core's part in claims (registry/claim.h): they are put and end, and their processes' clients follow at once.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <unordered_set>
#include <utility>

#include "common/clock.h"
#include "daemon/core.h"

namespace xschedd {
namespace {

// How late a claim may end behind its cgroup. Nobody is left in that.
constexpr std::uint64_t kLookNs = policy::kNsPerS;

}  // namespace

ClaimPtr Core::ClaimOf(const Client& client) const {
  const ClientIdentity& who = client.identity;
  // Also where that claim is over: it is not another's then.
  if (who.claim_socket != 0) return claims_.FindId(who.claim_socket);
  return claims_.Match(who.cgroup, who.cgroup_lineage);
}

Origin Core::OriginOf(const PeerIdentity& peer, std::uint64_t claim_socket) const {
  ProcessInfo process = ReadProcess(peer.pid, peer.pidfd.Get());
  CgroupLineage lineage = LineageOfProcess(process.cgroup, process.is_cgroup_exact);
  return {std::move(process.cgroup), std::move(lineage), std::move(process.place), claim_socket};
}

ClaimPtr Core::ClaimOf(const Origin& origin) const {
  if (origin.claim_socket != 0) return claims_.FindId(origin.claim_socket);
  return claims_.Match(origin.cgroup, origin.lineage);
}

std::string Core::PlaceNow(const Origin& origin) const {
  const ClaimPtr claim = ClaimOf(origin);
  return PlaceWithClaim(origin.claim_socket != 0 ? origin.claim_socket
                        : claim != nullptr       ? claim->id
                                                 : 0,
                        origin.place);
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
  FollowClaims(ClaimText(*put->claim) + " was put " + Text(by));
  if (put->is_changed) journal_.ClaimPut(*put->claim, put->is_new, ClientsOf(*put->claim), by);
  NoteClaim(put->claim->id, Urgency::kNow);
  AwaitClaims();
  return PutClaimResult{put->claim, put->is_new};
}

ClaimPtr Core::DeleteClaim(const std::string& name, const Actor& by) {
  const ClaimPtr removed = claims_.Remove(name);
  if (removed != nullptr) EndClaims({removed}, "removed " + Text(by), Urgency::kNow);
  return removed;
}

void Core::EndClaims(const std::vector<ClaimPtr>& ended, const std::string& why, Urgency urgency) {
  for (const ClaimPtr& claim : ended) {
    journal_.ClaimEnded(*claim, why, ClientsOf(*claim));
    NoteClaim(claim->id, urgency);
    if (claim_sockets_.close) claim_sockets_.close(*claim);
  }
  if (ended.empty()) return;
  FollowClaims((ended.size() == 1 ? ClaimText(*ended.front()) : std::string("its claim")) + " has ended: " + why);
}

void Core::LookAtClaims(std::uint64_t now_ns) {
  EndClaims(claims_.RemoveExpired(now_ns), "its time ran out, and it was not put again", Urgency::kSoon);
  EndClaims(claims_.RemoveGone(cgroups_), "its cgroup is gone", Urgency::kSoon);
}

void Core::AwaitClaims() {
  if (claims_.All().empty() || is_stopped_) return;
  const std::uint64_t now = MonotonicNs();
  const std::uint64_t expiry = claims_.NextExpiryNs();
  const std::uint64_t due = std::min(now + kLookNs, expiry == 0 ? now + kLookNs : std::max(now, expiry));
  // Those who put claims all the time do not put it off.
  if (claims_due_ns_ != 0 && claims_due_ns_ <= due) return;
  claims_due_ns_ = due;
  claims_timer_.expires_after(std::chrono::nanoseconds(due - now));
  claims_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    claims_due_ns_ = 0;
    LookAtClaims(MonotonicNs());
    AwaitClaims();
  });
}

std::size_t Core::ClientsOf(const Claim& claim) const {
  std::size_t count = 0;
  for (const auto& [id, client] : registry_.Clients())
    count += client->claim != nullptr && client->claim->id == claim.id ? 1 : 0;
  return count;
}

void Core::FollowClaims(const std::string& why) {
  std::vector<Client*> affected;
  for (const auto& [id, client] : registry_.Clients()) {
    ClaimPtr claim = ClaimOf(*client);
    if (claim == client->claim) continue;
    SetClaim(*client, std::move(claim));
    client->own = EffectiveOf(*client, config_);
    affected.push_back(client.get());
  }
  if (affected.empty()) return;
  for (Client* client : affected)
    UpdateGroup(*client);
  std::unordered_set<const Group*> groups;
  for (const Client* client : affected)
    if (groups.insert(client->group).second) UpdateMembers(*client->group, why);
  loop_.DecideNow();
}

bool Core::RestoreClaim(Claim claim) {
  const std::uint64_t id = claim.id;
  const bool is_restored = claims_.Restore(std::move(claim), cgroups_, MonotonicNs());
  if (const ClaimPtr restored = claims_.FindId(id); is_restored && restored->has_socket && claim_sockets_.open) {
    if (const auto opened = claim_sockets_.open(*restored); !opened) journal_.NoClaimSocket(*restored, opened.error());
  }
  if (is_restored && claims_.All().size() == 1) AwaitClaims();
  return is_restored;
}

}  // namespace xschedd
