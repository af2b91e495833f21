// A client without a GPU: makes a session as the shim does (preamble, shared memory, session stream) and reports busy
// and idle itself. For measuring the daemon, and for tests of xschedctl that need a client. Thread rule: one thread,
// except for what ledger.h and board.h allow from any.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "common/board.h"
#include "common/ledger.h"
#include "common/result.h"
#include "common/shared_memory.h"
#include "common/unique_fd.h"
#include "session.grpc.pb.h"

namespace xschedd::bench {

struct FakeDevice {
  std::string pci_address = "0000:fa:ce.0";
  std::string name = "no device (fake client)";
};

class FakeClient {
 public:
  // Connected, welcomed and attached to `device` as slot 0 when it returns.
  static Result<std::unique_ptr<FakeClient>> Connect(const std::string& runtime_dir, int priority,
                                                     const std::string& group, const FakeDevice& device);
  ~FakeClient();
  FakeClient(const FakeClient&) = delete;
  FakeClient& operator=(const FakeClient&) = delete;

  // Queues 1 to `count`, on slot 0.
  Result<void> CreateQueues(std::uint32_t count);

  const BoardReader& Board() const { return *board_; }
  LedgerWriter& Ledger() { return *ledger_; }
  // Reports busy or idle of slot 0 as the shim does: level, record and wake-up.
  void ReportBusy(bool busy);
  bool IsHeld() const { return (board_->Word(0) & abi::kHeld) != 0; }
  // For hostile clients.
  abi::Ledger& RawLedger() { return *static_cast<abi::Ledger*>(ledger_mapping_.Address()); }
  int EventFd() const { return eventfd_.Get(); }
  bool Send(const v1::ClientMessage& message) { return stream_->Write(message); }

  bool IsTracked() const { return (board_->Word(0) & abi::kTracked) != 0; }

 private:
  FakeClient() = default;
  Result<void> Greet(int fd, std::string& token);
  Result<void> StartSession(UniqueFd fd, const std::string& token, int priority, const std::string& group,
                            const FakeDevice& device);

  // Declared before what points into them, so that they are destroyed after it.
  Mapping board_mapping_;
  Mapping ledger_mapping_;
  std::unique_ptr<BoardReader> board_;
  std::unique_ptr<LedgerWriter> ledger_;
  UniqueFd eventfd_;
  std::unique_ptr<v1::ClientSession::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::DaemonMessage>> stream_;
};

}  // namespace xschedd::bench
