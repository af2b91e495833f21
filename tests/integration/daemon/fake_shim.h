// A client like the shim, without a GPU: preamble, session, shared memory. Thread rule: the test's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/board.h"
#include "common/ledger.h"
#include "common/preamble_client.h"
#include "common/shared_memory.h"
#include "session.grpc.pb.h"

namespace xschedd::test {

// A connected socket; -1 if no process listens.
UniqueFd ConnectTo(const std::string& path);
void MakeNonBlocking(int fd);
inline constexpr int kAnswerLimitMs = 30'000;  // for SayHello

class FakeShim {
 public:
  struct Options {
    std::optional<int> hint;
    std::string group;
    bool preamble = true;
    std::string token;  // instead of the preamble's
  };
  FakeShim(const std::string& runtime_dir, const Options& options);
  // Uses an existing connection.
  FakeShim(UniqueFd socket, const Options& options);
  FakeShim(const std::function<UniqueFd()>& connect, const Options& options);
  FakeShim(const std::string& runtime_dir, int hint) : FakeShim(runtime_dir, Options{hint, {}, true, {}}) {}
  ~FakeShim();

  // Closes the session and gives the status that the daemon ended it with.
  grpc::Status Finish();
  const v1::Welcome& Welcome() const { return welcome_; }
  const std::shared_ptr<grpc::Channel>& Channel() const { return channel_; }
  bool HasSession() const { return has_session_; }

  void Attach(std::uint32_t slot, const std::string& address, const std::string& vendor = "amd");
  void CreateQueue(std::uint64_t queue);
  void Send(const v1::ClientMessage& message);
  // Reads daemon messages until one is a notice.
  std::string NextNotice();
  std::optional<v1::Configuration> NextConfiguration();

  void Report(std::uint32_t slot, bool busy);
  // From here on the client renews nothing, like a stopped process; the test can still report for it.
  void StopRenewing();
  void Renew();
  bool IsHeld(std::uint32_t slot) const;
  bool IsTracked(std::uint32_t slot) const;
  std::uint32_t WindowUs(std::uint32_t slot) const { return board_->WindowUs(slot); }
  std::uint64_t MemoryLimit(std::uint32_t slot) const { return board_->MemoryLimit(slot); }
  bool IsLeaseOver() const;
  std::uint64_t LeaseUntilNs() const { return board_->LeaseUntilNs(); }
  // Whether the board can be mapped for writing through the descriptor that the daemon gave.
  bool CanWriteBoard() const { return can_write_board_; }
  // Waits as a launching thread does, until the gate is open or the lease ends; returns the time in ns.
  std::uint64_t WaitAtGate(std::uint32_t slot);

  abi::Ledger* RawLedger() { return static_cast<abi::Ledger*>(ledger_mapping_.Address()); }
  int EventFd() const { return eventfd_.Get(); }
  std::uint64_t BoardInode() const { return board_inode_; }
  std::uint64_t LedgerInode() const { return ledger_inode_; }

 private:
  Mapping board_mapping_;
  Mapping ledger_mapping_;
  UniqueFd eventfd_;
  std::optional<BoardReader> board_;
  std::unique_ptr<LedgerWriter> ledger_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ClientSession::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::DaemonMessage>> stream_;
  v1::Welcome welcome_;
  std::uint64_t board_inode_ = 0;
  bool can_write_board_ = false;
  std::uint64_t ledger_inode_ = 0;
  bool has_session_ = false;
  bool finished_ = false;
};

}  // namespace xschedd::test
