#include "daemon/state/returning_clients.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/connections/await_end.h"
#include "daemon/state/saved_state.h"

namespace xschedd {
namespace {

using boost::system::error_code;

constexpr char kDidNotReturn[] = "it did not come back after the restart";
constexpr char kHasOtherSession[] = "its process has another session";

bool IsOf(const state::Client& saved, const ClientIdentity& who) {
  return saved.pid() == who.pid && IsSame({saved.start_ticks(), saved.pidfd_inode()}, who.key);
}

}  // namespace

ReturningClients::Waiting::~Waiting() {
  CloseForGood(dead);
}

ReturningClients::ReturningClients(boost::asio::io_context& io, Core& core,
                                   std::function<void(std::uint64_t)> on_absent_change)
    : io_(io), core_(core), on_absent_change_(std::move(on_absent_change)), grace_(io) {}

void ReturningClients::AddWaiting(std::uint64_t id, std::unique_ptr<Channel> channel, UniqueFd process) {
  auto waiting = std::make_shared<Waiting>(io_);
  waiting->channel = std::move(channel);
  waiting->dead.assign(process.Release());
  AwaitExit(waiting->dead, waiting, [this, id](const error_code& error) {
    if (!error) Remove(id, "it exited");
  });
  waiting_.emplace(id, std::move(waiting));
}

void ReturningClients::AddAbsent(const state::Client& saved) {
  if (FromSaved(saved).set == SetByOthers{} && saved.others_mode().empty()) return;
  absent_.push_back(saved);
  absent_.back().clear_channel();
}

void ReturningClients::BeginGrace() {
  in_grace_ = true;
  grace_.expires_after(kGrace);
  grace_.async_wait([this](const error_code& error) {
    if (!error) EndGrace();
  });
}

void ReturningClients::EndGrace() {
  if (!core_.IsEnabled()) return;  // until EnabledChanged
  in_grace_ = false;
  for (const state::Client& client : std::exchange(absent_, {}))
    on_absent_change_(client.id());
  std::vector<std::uint64_t> ids;
  for (const auto& [id, waiting] : waiting_)
    ids.push_back(id);
  for (const std::uint64_t id : ids)
    Remove(id, kDidNotReturn);
}

void ReturningClients::EnabledChanged() {
  const bool is_over = grace_.expiry() <= std::chrono::steady_clock::now();
  if (!stopped_ && in_grace_ && is_over && core_.IsEnabled()) BeginGrace();
}

void ReturningClients::Stop() {
  stopped_ = true;
  grace_.cancel();
}

std::optional<ReturningClients::Memory> ReturningClients::TakeMemory(const PeerIdentity& peer,
                                                                     const abi::Layout& layout) {
  for (auto& [id, waiting] : waiting_) {
    const Client* const client = core_.Clients().Find(id);
    if (waiting->channel == nullptr || client->identity.pid != static_cast<std::uint64_t>(peer.pid)) continue;
    if (!IsSame(client->identity.key, ReadProcessKey(peer.pid, peer.pidfd.Get()))) continue;
    // The process has loaded another version of the client library: it gets fresh memory, and keeps its settings.
    if (waiting->channel->Layout() != layout) continue;
    if (client->identity.uid != peer.uid) {
      Remove(id, "its process has changed its user");
      return std::nullopt;
    }
    return Memory{std::move(waiting->channel), id};
  }
  return std::nullopt;
}

void ReturningClients::GiveBack(std::uint64_t waiting_id, std::unique_ptr<Channel> channel) {
  const auto found = waiting_.find(waiting_id);
  if (found == waiting_.end()) return;
  found->second->channel = std::move(channel);
  SPDLOG_DEBUG("client waits again id={}", waiting_id);
  if (found->second->is_superseded) return Remove(waiting_id, kHasOtherSession);
  if (!in_grace_) return Remove(waiting_id, kDidNotReturn);
  // If the process exited while a connection had its memory, only that connection was notified.
  if (HasExited(found->second->dead.native_handle())) Remove(waiting_id, "it exited");
}

void ReturningClients::Remove(std::uint64_t id, const std::string& why) {
  const auto found = waiting_.find(id);
  // If a connection has the memory, it removes the client itself.
  if (stopped_ || found == waiting_.end() || found->second->channel == nullptr) return;
  core_.RemoveClient(id, why);
  waiting_.erase(id);
}

void ReturningClients::Supersede(Client& client) {
  RestoreAbsent(client);
  // The process has connected twice. Its first connection has the memory, and no session (yet).
  for (auto& [id, waiting] : waiting_) {
    const Client& before = *core_.Clients().Find(id);
    const bool is_same = before.identity.pid == client.identity.pid && IsSame(before.identity.key, client.identity.key);
    if (!is_same || waiting->is_superseded) continue;
    waiting->is_superseded = true;
    core_.RestoreSettings(client, {SettingsOf(before), before.hold, before.owner_hold},
                          before.group->memory.benefit->settled);
    return Remove(id, kHasOtherSession);
  }
}

void ReturningClients::RestoreAbsent(Client& client) {
  const auto found = std::find_if(absent_.begin(), absent_.end(),
                                  [&](const state::Client& saved) { return IsOf(saved, client.identity); });
  if (found == absent_.end()) return;
  const RestoredClient saved = FromSaved(*found);
  on_absent_change_(found->id());
  absent_.erase(found);
  core_.RestoreSettings(client, saved.set, saved.others_mode);
}

}  // namespace xschedd
