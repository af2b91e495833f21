// Nothing is lost by a restart: keeps the state saved while the daemon serves, and takes over what an earlier one left.
//
//   while serving   each client's memory goes into the descriptor store, and the state into a file there, by a thread
//                   of its own (state_writer.h). Changes are gathered for some milliseconds; an administrator's are
//                   saved before they are answered
//   at the start    for each saved client whose process still lives (process_key.h), its record and memory are there
//                   again and scheduled at once. It WAITS for its session: when the process connects, it gets the same
//                   memory. Who has not come back after kGrace is gone
//
// Of a client whose memory is not in the store, what an administrator has set is kept for its next session all the
// same. A process with several sessions gets fresh memory for each: nothing tells which of them is back. Thread rule:
// the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/core.h"
#include "daemon/registry/process.h"
#include "daemon/service_manager/descriptor_store.h"
#include "daemon/state/state_file.h"
#include "daemon/state/state_writer.h"
#include "state.pb.h"

namespace xschedd {

class StateKeeper final : public CoreObserver {
 public:
  static constexpr std::chrono::seconds kGrace{10};

  StateKeeper(boost::asio::io_context& io, Core& core, DescriptorStore& store);
  ~StateKeeper() override;

  // Before anybody connects. What cannot be used is told in the log and left out.
  void Restore(std::vector<PassedDescriptor> passed);
  // The loop turns: this start has not failed.
  void Serving();
  // An orderly stop begins: what is saved stays as it is from here on.
  void Freeze();

  struct Given {
    std::unique_ptr<Channel> channel;
    std::uint64_t waiting_id = 0;  // of the client that has waited for this process; 0: the memory is fresh
  };
  // Memory for a process that has connected.
  Result<Given> MemoryFor(const PeerIdentity& peer, const abi::Layout& layout);
  // The process did not come as far as to a session: it may try again.
  void GiveBack(std::uint64_t waiting_id, std::unique_ptr<Channel> channel);
  // It has its session; the memory is its connection's.
  void Arrived(std::uint64_t waiting_id);

  // Calls `done` in the loop once what an administrator has changed so far is saved. It fails, with the reason, where a
  // restart would lose it; without a service manager nothing outlives the daemon, and that is no failure.
  void WhenSaved(StateWriter::Saved done);
  // Clients that are not there, and count as if they were.
  std::size_t Expected() const { return expected_.size(); }

  // ---- CoreObserver
  void ClientAdded(Client& client) override;
  void ClientGone(const Client& client) override;
  void ClientChanged(const Client& client, Urgency urgency) override;
  void Changed(Urgency urgency) override;

 private:
  struct Waiting {
    explicit Waiting(boost::asio::io_context& io) : dead(io) {}
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    std::unique_ptr<Channel> channel;            // null: a connection has it
    bool is_superseded = false;                  // its process has a session with other memory
    boost::asio::posix::stream_descriptor dead;  // the pidfd
  };

  // What a change is of, among the parts that are saved; a client's is its number.
  static constexpr std::uint64_t kHead = 0;
  static constexpr std::uint64_t kPartitions = ~std::uint64_t{0};

  bool Load(std::vector<UniqueFd> files, state::SavedState& saved);
  void RestorePolicy(const state::SavedState& saved);
  void RestoreClients(const state::SavedState& saved, std::map<std::uint64_t, std::vector<UniqueFd>> channels);
  // Why the client is not there again with its memory; empty: it is.
  std::string RestoreClient(const state::Client& saved, std::vector<UniqueFd> descriptors);
  void Expect(const state::Client& saved);
  void Supersede(Client& client);
  void RemoveWaiting(std::uint64_t id, const std::string& why);
  void BeginGrace();
  void EndGrace();
  void NoteChange(std::uint64_t part, Urgency urgency);
  void NoteAll();
  std::string Serialise(std::uint64_t part) const;
  // Gives the writer what has changed.
  void Save(StateWriter::Saved saved = {});

  boost::asio::io_context& io_;
  Core& core_;
  DescriptorStore& store_;
  std::optional<StateFile> file_;  // until the writer has it
  std::optional<StateWriter> writer_;
  std::string why_unsaved_;                                    // there is no writer
  std::map<std::uint64_t, std::uint64_t> channels_;            // stored, by client
  std::map<std::uint64_t, std::shared_ptr<Waiting>> waiting_;  // by client
  std::vector<state::Client> expected_;  // not in the registry: settings for a session that may come
  boost::asio::steady_timer grace_;
  boost::asio::steady_timer gather_;
  bool in_grace_ = false;
  std::set<std::uint64_t> changed_;       // parts
  std::uint64_t partitions_version_ = 0;  // that was saved
  bool gathering_ = false;
  bool is_urgent_ = false;  // an administrator waits for what has changed
  bool frozen_ = false;
  bool told_full_ = false;
};

}  // namespace xschedd
