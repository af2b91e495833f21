#include "tests/integration/daemon/fake_shim.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <stdexcept>

#include "common/clock.h"
#include "tools/bench/gate/renewer.h"

namespace xschedd::test {
namespace {

std::uint64_t InodeOf(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

UniqueFd ConnectTo(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(fd.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return UniqueFd();
  return fd;
}

void MakeNonBlocking(int fd) {
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

FakeShim::FakeShim(const std::string& runtime_dir, const Options& options)
    : FakeShim([path = runtime_dir + "/client.sock"] { return ConnectTo(path); }, options) {}

FakeShim::FakeShim(UniqueFd socket, const Options& options)
    : FakeShim([&socket] { return std::move(socket); }, options) {}

FakeShim::FakeShim(const std::function<UniqueFd()>& connect, const Options& options) {
  UniqueFd socket;
  v1::ClientMessage hello;
  if (!options.preamble) socket = connect();
  if (options.preamble) {
    Greeting greeting = GreetDaemon(connect, kAnswerLimitMs);
    socket = std::move(greeting.socket);
    if (!socket.IsValid()) throw std::runtime_error("cannot connect");
    auto& welcomed = greeting.welcomed;
    const abi::Layout& layout = *greeting.layout;
    if (!welcomed) throw std::runtime_error("no welcome");
    if (const auto status = welcomed->welcome.status; status != PreambleStatus::kOk) {
      throw std::runtime_error("status " + std::to_string(static_cast<unsigned>(status)));
    }
    auto board = MapSharedMemory(welcomed->descriptors[0].Get(), layout.board_bytes, Access::kReadOnly);
    auto ledger = MapSharedMemory(welcomed->descriptors[1].Get(), layout.ledger_bytes, Access::kReadWrite);
    if (!board || !ledger) throw std::runtime_error("cannot map");
    board_inode_ = InodeOf(welcomed->descriptors[0].Get());
    can_write_board_ =
        MapSharedMemory(welcomed->descriptors[0].Get(), sizeof(abi::Board), Access::kReadWrite).has_value();
    ledger_inode_ = InodeOf(welcomed->descriptors[1].Get());
    board_mapping_ = std::move(*board);
    ledger_mapping_ = std::move(*ledger);
    eventfd_ = std::move(welcomed->descriptors[2]);
    const auto* raw = static_cast<const abi::Board*>(board_mapping_.Address());
    board_ = BoardReader::Open(raw, layout).value();
    ledger_.reset(LedgerWriter::Open(RawLedger(), raw, eventfd_.Get(), layout).value());
    bench::Renewer::Add(ledger_.get());
    hello.mutable_hello()->set_token(welcomed->welcome.token, sizeof welcomed->welcome.token);
  }
  if (!socket.IsValid()) throw std::runtime_error("cannot connect");
  MakeNonBlocking(socket.Get());
  channel_ = grpc::CreateInsecureChannelFromFd("xschedd", socket.Release());
  stub_ = v1::ClientSession::NewStub(channel_);
  stream_ = stub_->Session(&context_);
  hello.mutable_hello()->set_client_version("test");
  hello.mutable_hello()->set_runtime("fake");
  hello.mutable_hello()->set_group(options.group);
  if (!options.token.empty()) hello.mutable_hello()->set_token(options.token);
  if (options.hint) hello.mutable_hello()->set_priority_hint(*options.hint);
  stream_->Write(hello);
  v1::DaemonMessage answer;
  has_session_ = stream_->Read(&answer) && answer.has_welcome();
  if (has_session_) welcome_ = answer.welcome();
}

FakeShim::~FakeShim() {
  StopRenewing();
  Finish();
}

grpc::Status FakeShim::Finish() {
  if (finished_) return grpc::Status::OK;
  finished_ = true;
  stream_->WritesDone();
  v1::DaemonMessage message;
  while (stream_->Read(&message)) {
  }
  return stream_->Finish();
}

void FakeShim::Send(const v1::ClientMessage& message) {
  stream_->Write(message);
}

void FakeShim::Attach(std::uint32_t slot, const std::string& address, const std::string& vendor) {
  v1::ClientMessage message;
  v1::DeviceAttached& device = *message.mutable_device_attached();
  device.set_slot(slot);
  device.set_pci_address(address);
  device.set_name("Fake GPU");
  device.set_compute_units(4);
  device.set_vendor(vendor);
  Send(message);
}

void FakeShim::CreateQueue(std::uint64_t queue) {
  v1::ClientMessage message;
  message.mutable_queue_created()->set_queue(queue);
  Send(message);
}

std::string FakeShim::NextNotice() {
  v1::DaemonMessage message;
  while (stream_->Read(&message)) {
    if (message.has_notice()) return message.notice().text();
  }
  return {};
}

std::optional<v1::Configuration> FakeShim::NextConfiguration() {
  v1::DaemonMessage message;
  while (stream_->Read(&message)) {
    if (message.has_configuration()) return message.configuration();
  }
  return std::nullopt;
}

void FakeShim::StopRenewing() {
  bench::Renewer::Remove(ledger_.get());
}

void FakeShim::Renew() {
  ledger_->Renew();
}

void FakeShim::Report(std::uint32_t slot, bool busy) {
  ledger_->Report(slot, busy ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, MonotonicNs());
}

bool FakeShim::IsHeld(std::uint32_t slot) const {
  return (board_->Word(slot) & abi::kHeld) != 0;
}

bool FakeShim::IsTracked(std::uint32_t slot) const {
  return (board_->Word(slot) & abi::kTracked) != 0;
}

bool FakeShim::IsLeaseOver() const {
  return board_->LeaseUntilNs() <= MonotonicNs();
}

std::uint64_t FakeShim::WaitAtGate(std::uint32_t slot) {
  const std::uint64_t began = MonotonicNs();
  ledger_->AddWaiter(slot);
  for (;;) {
    const std::uint32_t word = board_->Word(slot);
    if ((word & abi::kHeld) == 0 || IsLeaseOver()) break;
    board_->Wait(slot, word, board_->LeaseUntilNs());
  }
  ledger_->RemoveWaiter(slot);
  return MonotonicNs() - began;
}

}  // namespace xschedd::test
