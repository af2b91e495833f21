#include "tools/bench/gate/fake_client.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/clock.h"
#include "common/preamble_client.h"
#include "common/runtime_dir.h"
#include "common/unix_socket.h"
#include "tools/bench/gate/renewer.h"

namespace xschedd::bench {
namespace {

constexpr int kAnswerLimitMs = 30'000;

std::string Reason() {
  return std::strerror(errno);
}

Result<UniqueFd> ConnectTo(const std::string& path) {
  UniqueFd fd = ConnectUnix(path);
  if (!fd.IsValid()) return Fail("cannot connect to " + path + ": " + Reason(), "start xschedd");
  return fd;
}

}  // namespace

Result<std::unique_ptr<FakeClient>> FakeClient::Connect(const std::string& runtime_dir, int priority,
                                                        const std::string& group, const FakeDevice& device) {
  Result<UniqueFd> fd = ConnectTo(ClientSocketPath(RuntimeDir(runtime_dir)));
  if (!fd) return tl::unexpected<Error>(fd.error());
  std::unique_ptr<FakeClient> client(new FakeClient);
  std::string token;
  if (const auto greeted = client->Greet(fd->Get(), token); !greeted) return tl::unexpected<Error>(greeted.error());
  const auto started = client->StartSession(std::move(*fd), token, priority, group, device);
  if (!started) return tl::unexpected<Error>(started.error());
  return client;
}

Result<void> FakeClient::Greet(int fd, std::string& token) {
  std::optional<Welcomed> welcomed = SayHello(fd, MakeHello(), kAnswerLimitMs);
  if (!welcomed) return Fail("the daemon did not answer the greeting: " + Reason());
  auto& [welcome, descriptors] = *welcomed;
  if (welcome.status != PreambleStatus::kOk) {
    return Fail("the daemon refused the greeting, status " +
                std::to_string(static_cast<std::uint32_t>(welcome.status)));
  }
  Result<Mapping> board = MapSharedMemory(descriptors[0].Get(), sizeof(abi::Board), Access::kReadOnly);
  if (!board) return tl::unexpected<Error>(board.error());
  Result<Mapping> ledger = MapSharedMemory(descriptors[1].Get(), sizeof(abi::Ledger), Access::kReadWrite);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  board_mapping_ = std::move(*board);
  ledger_mapping_ = std::move(*ledger);
  eventfd_ = std::move(descriptors[2]);
  const auto* const board_memory = static_cast<const abi::Board*>(board_mapping_.Address());

  const Result<BoardReader> reader = BoardReader::Open(board_memory);
  if (!reader) return tl::unexpected<Error>(reader.error());
  board_ = std::make_unique<BoardReader>(*reader);
  const Result<LedgerWriter*> writer =
      LedgerWriter::Open(static_cast<abi::Ledger*>(ledger_mapping_.Address()), board_memory, eventfd_.Get());
  if (!writer) return tl::unexpected<Error>(writer.error());
  ledger_.reset(*writer);
  Renewer::Add(ledger_.get());
  token.assign(welcome.token, sizeof(welcome.token));
  return {};
}

Result<void> FakeClient::StartSession(UniqueFd fd, const std::string& token, int priority, const std::string& group,
                                      const FakeDevice& device) {
  if (fcntl(fd.Get(), F_SETFL, O_NONBLOCK) != 0) return Fail("cannot set the socket non-blocking: " + Reason());
  stub_ = v1::ClientSession::NewStub(grpc::CreateInsecureChannelFromFd("xschedd", fd.Release()));
  stream_ = stub_->Session(&context_);
  v1::ClientMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_client_version("bench");
  hello.set_token(token);
  hello.set_group(group);
  hello.set_priority_hint(priority);
  hello.set_runtime("none");
  v1::DaemonMessage answer;
  if (!stream_->Write(message) || !stream_->Read(&answer) || !answer.has_welcome()) {
    return Fail("the daemon did not welcome the session: " + stream_->Finish().error_message());
  }
  v1::DeviceAttached& attached = *message.mutable_device_attached();
  attached.set_slot(0);
  attached.set_pci_address(device.pci_address);
  attached.set_name(device.name);
  attached.set_compute_units(1);
  attached.set_vendor("amd");
  if (!stream_->Write(message)) return Fail("the daemon ended the session");
  return {};
}

Result<void> FakeClient::CreateQueues(std::uint32_t count) {
  for (std::uint32_t queue = 1; queue <= count; ++queue) {
    v1::ClientMessage message;
    message.mutable_queue_created()->set_queue(queue);
    if (!stream_->Write(message)) return Fail("the daemon ended the session");
  }
  return {};
}

FakeClient::~FakeClient() {
  Renewer::Remove(ledger_.get());
  context_.TryCancel();
  if (stream_ != nullptr) (void)stream_->Finish();
}

void FakeClient::ReportBusy(bool busy) {
  ledger_->Report(0, busy ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, MonotonicNs());
}

}  // namespace xschedd::bench
