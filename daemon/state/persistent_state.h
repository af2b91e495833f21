// Carries the daemon's state across a restart: the daemon saves it while it serves, and the next one takes it over.
//
//   while serving   the descriptor store has each client's memory, and a file with the state (state_saver.h)
//   at the start    each saved client whose process is still alive (process_key.h) gets its record and memory back, is
//                   scheduled at once, and waits for its session (returning_clients.h)
//
// Thread rule: the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core.h"
#include "daemon/service_manager/descriptor_store.h"
#include "daemon/state/returning_clients.h"
#include "daemon/state/state_file.h"
#include "daemon/state/state_saver.h"
#include "state.pb.h"

namespace xschedd {

class PersistentState final : public CoreObserver {
 public:
  PersistentState(boost::asio::io_context& io, Core& core, DescriptorStore& store);

  // Before any client connects. What cannot be used is logged and left out.
  void Restore(std::vector<PassedDescriptor> passed);
  // The daemon's loop runs: this start has succeeded.
  void Serving() { saver_.Serving(); }
  // An orderly stop begins: saves everything once more, and nothing after that.
  void Freeze();

  using Memory = ReturningClients::Memory;  // waiting_id 0: the memory is fresh
  // Memory for a process that has connected.
  Result<Memory> MemoryFor(const PeerIdentity& peer, const abi::Layout& layout);
  // As in ReturningClients.
  void GiveBack(std::uint64_t waiting_id, std::unique_ptr<Channel> channel) {
    returning_.GiveBack(waiting_id, std::move(channel));
  }
  void Returned(std::uint64_t waiting_id) { returning_.Returned(waiting_id); }

  // Calls `done` in the loop once everything that an administrator has changed so far is saved; with an error if a
  // restart would lose it. Without a service manager nothing outlives the daemon; that is not an error.
  void WhenSaved(StateWriter::Saved done) { saver_.WhenSaved(std::move(done)); }
  // Clients that are not in the registry, but count towards the limit.
  std::size_t AbsentClients() const { return returning_.Absent().size(); }

  // ---- CoreObserver
  void ClientAdded(Client& client) override;
  void ClientGone(const Client& client) override;
  void ClientChanged(const Client& client, Urgency urgency) override;
  void Changed(Urgency urgency) override;
  void ClaimChanged(std::uint64_t claim, Urgency urgency) override;

 private:
  // Ids of the saved parts: a client's part has the client's id, a claim's has kClaimParts plus the claim's id.
  static constexpr std::uint64_t kHead = 0;
  static constexpr std::uint64_t kClaimParts = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kPartitions = ~std::uint64_t{0};

  std::optional<StateFile> Load(std::vector<UniqueFd> files, std::optional<state::SavedState>& saved);
  void RestoreAll(const state::SavedState& saved, std::map<std::uint64_t, std::vector<UniqueFd>> channels);
  void RestorePolicy(const state::SavedState& saved);
  void RestoreClaims(const state::SavedState& saved);
  void RestoreClients(const state::SavedState& saved, std::map<std::uint64_t, std::vector<UniqueFd>> channels);
  // Takes the client's memory out of `channels` and restores the client. Returns why it failed; empty: it did not.
  std::string RestoreMemory(const state::Client& saved, std::map<std::uint64_t, std::vector<UniqueFd>>& channels);
  std::string RestoreClient(const state::Client& saved, std::vector<UniqueFd> descriptors);
  void NoteChange(std::uint64_t part, Urgency urgency);
  StateSaver::PartIds AllParts() const;
  StateWriter::Parts Serialise(const StateSaver::PartIds& changed);
  std::string SerialisePart(std::uint64_t part) const;

  Core& core_;
  DescriptorStore& store_;
  ReturningClients returning_;
  StateSaver saver_;
  std::map<std::uint64_t, std::uint64_t> channels_;  // by client: its memory's id in the store
  std::uint64_t partitions_version_ = 0;             // as last saved
  bool frozen_ = false;
  bool warned_full_ = false;
};

}  // namespace xschedd
