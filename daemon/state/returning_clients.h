// Clients of an earlier daemon that have no session with this one yet. Each has kGrace to reconnect:
//
//   waiting   its record and memory are restored, and it is scheduled; when its process connects, it gets this memory
//   absent    its memory could not be restored; its settings are kept for its next session
//
// A process with several sessions gets fresh memory for each, because the daemon cannot know which of them reconnects.
// While the daemon is disabled, the grace period does not end, since no client can reconnect. Thread rule: the daemon's
// one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core.h"
#include "daemon/registry/process.h"
#include "state.pb.h"

namespace xschedd {

class ReturningClients {
 public:
  static constexpr std::chrono::seconds kGrace{10};

  // `on_absent_change`: called with the id of each absent client that is no longer kept.
  ReturningClients(boost::asio::io_context& io, Core& core, std::function<void(std::uint64_t)> on_absent_change);

  // `id`: of a restored client in the registry. `process`: its pidfd.
  void AddWaiting(std::uint64_t id, std::unique_ptr<Channel> channel, UniqueFd process);
  // Keeps the client only if something is set for it, or was learnt of it.
  void AddAbsent(const state::Client& saved);
  void BeginGrace();
  // The daemon was disabled or enabled.
  void EnabledChanged();
  // The daemon stops: waiting clients are left to the next one.
  void Stop();

  struct Memory {
    std::unique_ptr<Channel> channel;
    std::uint64_t waiting_id = 0;
  };
  // The memory that was kept for the connected process. None: there is none.
  std::optional<Memory> TakeMemory(const PeerIdentity& peer, const abi::Layout& layout);
  // The connection ended before it had a session; the process may try again.
  void GiveBack(std::uint64_t waiting_id, std::unique_ptr<Channel> channel);
  // The client has its session, and the memory belongs to its connection.
  void Returned(std::uint64_t waiting_id) { waiting_.erase(waiting_id); }
  // `client`'s process has a session with fresh memory: gives it the settings from before the restart, and removes the
  // client that waited for the process.
  void Supersede(Client& client);

  const std::vector<state::Client>& Absent() const { return absent_; }

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

  void RestoreAbsent(Client& client);
  void Remove(std::uint64_t id, const std::string& why);
  void EndGrace();

  boost::asio::io_context& io_;
  Core& core_;
  std::function<void(std::uint64_t)> on_absent_change_;
  std::map<std::uint64_t, std::shared_ptr<Waiting>> waiting_;  // by client
  std::vector<state::Client> absent_;                          // not in the registry
  boost::asio::steady_timer grace_;
  bool in_grace_ = false;
  bool stopped_ = false;
};

}  // namespace xschedd
