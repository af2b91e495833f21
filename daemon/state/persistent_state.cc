#include "daemon/state/persistent_state.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/state/saved_state.h"

namespace xschedd {

PersistentState::PersistentState(boost::asio::io_context& io, Core& core, DescriptorStore& store)
    : core_(core),
      store_(store),
      returning_(io, core, [this](std::uint64_t id) { NoteChange(id, Urgency::kSoon); }),
      saver_(io, [this](const StateSaver::PartIds& changed) { return Serialise(changed); }) {}

void PersistentState::Freeze() {
  if (frozen_) return;
  core_.SettledAccounts();
  saver_.Finish(AllParts());
  frozen_ = true;
  returning_.Stop();
}

Result<PersistentState::Memory> PersistentState::MemoryFor(const PeerIdentity& peer, const abi::Layout& layout) {
  if (auto waiting = returning_.TakeMemory(peer, layout)) return std::move(*waiting);
  if (store_.HasRoom() && !frozen_) {
    auto lasting = Channel::MakeLasting(layout);
    if (lasting) return Memory{std::move(*lasting)};
  } else if (store_.IsPresent() && !std::exchange(warned_full_, true)) {
    SPDLOG_WARN(
        "the descriptor store is full: after a restart, further clients get fresh memory clients={} "
        "remedy=\"raise FileDescriptorStoreMax in xschedd.service\"",
        channels_.size());
  }
  auto fresh = Channel::Make(layout);
  if (!fresh) return tl::unexpected(fresh.error());
  return Memory{std::move(*fresh)};
}

void PersistentState::ClientAdded(Client& client) {
  if (frozen_) return;
  returning_.Supersede(client);
  if (client.channel != nullptr && client.channel->IsLasting() && !channels_.contains(client.id)) {
    if (store_.StoreChannel(client.id, *client.channel)) channels_.emplace(client.id, client.id);
    client.channel->ForgetDescriptors();
  }
  NoteChange(client.id, Urgency::kSoon);
}

void PersistentState::ClientGone(const Client& client) {
  if (frozen_) return;
  if (const auto found = channels_.find(client.id); found != channels_.end()) {
    store_.RemoveChannel(found->second);
    channels_.erase(found);
  }
  NoteChange(client.id, Urgency::kSoon);
}

void PersistentState::ClientChanged(const Client& client, Urgency urgency) {
  NoteChange(client.id, urgency);
}

void PersistentState::Changed(Urgency urgency) {
  returning_.EnabledChanged();
  NoteChange(kHead, urgency);
}

void PersistentState::ClaimChanged(std::uint64_t claim, Urgency urgency) {
  NoteChange(kClaimParts + claim, urgency);
}

void PersistentState::NoteChange(std::uint64_t part, Urgency urgency) {
  if (!frozen_) saver_.NoteChange(part, urgency);
}

StateSaver::PartIds PersistentState::AllParts() const {
  StateSaver::PartIds all{kHead, kPartitions};
  for (const auto& [id, client] : core_.Clients().Clients())
    all.insert(id);
  for (const state::Client& client : returning_.Absent())
    all.insert(client.id());
  for (const auto& [id, account] : core_.Accounts().All())
    all.insert(kClaimParts + id);
  return all;
}

StateWriter::Parts PersistentState::Serialise(const StateSaver::PartIds& changed) {
  StateWriter::Parts parts;
  for (const std::uint64_t part : changed)
    parts.emplace(part, SerialisePart(part));
  parts.emplace(kHead, SerialisePart(kHead));  // every time, because it has the next client's id
  const std::uint64_t version = core_.Clients().Names().Version();
  if (std::exchange(partitions_version_, version) != version) parts.emplace(kPartitions, SerialisePart(kPartitions));
  return parts;
}

std::string PersistentState::SerialisePart(std::uint64_t part) const {
  state::SavedState saved;
  if (part == kHead) {
    FillSaved(core_, saved);
  } else if (part == kPartitions) {
    FillPartitions(core_.Clients().Names().Known(), saved);
  } else if (part >= kClaimParts) {
    FillClaimPart(core_, part - kClaimParts, saved);
  } else if (const Client* const client = core_.Clients().Find(part)) {
    const auto channel = channels_.find(part);
    *saved.add_clients() = ToSaved(*client, channel != channels_.end() ? std::optional(channel->second) : std::nullopt);
  } else {
    for (const state::Client& absent : returning_.Absent()) {
      if (absent.id() == part) *saved.add_clients() = absent;
    }
  }
  return saved.SerializeAsString();
}

}  // namespace xschedd
