// A client of version 1, built only from the frozen headers and protocol in v1/: it behaves as an old shim does. For
// tests of newer daemons.
//   frozen_client RUNTIME_DIR PRIORITY
// First line of output: "connected VERSION", or "refused STATUS VERSION". Then each line of input is a command,
// answered by one line: "busy", "idle" (reported; answers "done"), "gate" (answers "open", "tracked" or "held"), "wait"
// (waits at the gate as a launching thread does; answers "through"). Ends with its input. Thread rule: one thread.
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "session.grpc.pb.h"
#include "tests/abi/v1/abi.h"
#include "tests/abi/v1/preamble.h"

namespace {

using namespace xschedd_v1;
namespace v1 = xschedd::v1;

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::uint64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

int Connect(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) Die("connect");
  return fd;
}

class Client {
 public:
  bool Greet(int fd) {
    PreambleHello hello{};
    std::memcpy(hello.magic, kHelloMagic, sizeof hello.magic);
    hello.abi_version = abi::kVersion;
    hello.layout_hash = abi::kLayoutHash;
    if (::send(fd, &hello, sizeof hello, 0) != static_cast<ssize_t>(sizeof hello)) Die("send");
    iovec piece{&welcome_, sizeof welcome_};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kPreambleDescriptors)] = {};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(fd, &message, MSG_WAITALL) != static_cast<ssize_t>(sizeof welcome_)) Die("recvmsg");
    if (std::memcmp(welcome_.magic, kWelcomeMagic, sizeof welcome_.magic) != 0) Die("no welcome");
    if (welcome_.status != PreambleStatus::kOk) {
      if (CMSG_FIRSTHDR(&message) != nullptr) Die("descriptors beside a refusal");
      return false;
    }
    int descriptors[kPreambleDescriptors];
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr) Die("no descriptors");
    std::memcpy(descriptors, CMSG_DATA(header), sizeof descriptors);
    // The shim of version 1 mapped exactly this much, and refused memory of another size or another header.
    for (const auto& [object, size] :
         {std::pair{descriptors[0], sizeof(abi::Board)}, {descriptors[1], sizeof(abi::Ledger)}}) {
      if (::lseek(object, 0, SEEK_END) != static_cast<off_t>(size)) Die("memory of another size");
    }
    void* board = ::mmap(nullptr, sizeof(abi::Board), PROT_READ, MAP_SHARED, descriptors[0], 0);
    void* ledger = ::mmap(nullptr, sizeof(abi::Ledger), PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[1], 0);
    if (board == MAP_FAILED || ledger == MAP_FAILED) Die("mmap");
    board_ = static_cast<const abi::Board*>(board);
    ledger_ = static_cast<abi::Ledger*>(ledger);
    eventfd_ = descriptors[2];
    const auto fits = [](std::uint32_t version, std::uint64_t hash) {
      return version == abi::kVersion && hash == abi::kLayoutHash;
    };
    if (board_->header.magic != abi::kBoardMagic || ledger_->header.magic != abi::kLedgerMagic ||
        !fits(board_->header.version, board_->header.layout_hash) ||
        !fits(ledger_->header.version, ledger_->header.layout_hash)) {
      Die("another header");
    }
    return true;
  }

  void StartSession(int fd, int priority) {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    stub_ = v1::ClientSession::NewStub(grpc::CreateInsecureChannelFromFd("xschedd", fd));
    stream_ = stub_->Session(&context_);
    v1::ClientMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_client_version("frozen");
    hello.set_token(welcome_.token, sizeof welcome_.token);
    hello.set_priority_hint(priority);
    v1::DaemonMessage answer;
    if (!stream_->Write(message) || !stream_->Read(&answer) || !answer.has_welcome()) Die("no session");
    v1::DeviceAttached& device = *message.mutable_device_attached();
    device.set_slot(3);
    device.set_pci_address("0000:c1:00.0");
    device.set_name("frozen");
    device.set_compute_units(1);
    device.set_vendor("amd");
    if (!stream_->Write(message)) Die("no session any more");
  }

  void Report(abi::TransitionKind kind) {
    ledger_->devices[3].busy.store(kind == abi::TransitionKind::kBusy ? 1 : 0, std::memory_order_release);
    const std::uint64_t head = ledger_->control.ring_head.load(std::memory_order_relaxed);
    ledger_->ring[head % abi::kRingSize] = {NowNs(), static_cast<std::uint32_t>(kind), 3};
    ledger_->control.ring_head.store(head + 1, std::memory_order_seq_cst);
    if (board_->control.daemon_sleeping.load(std::memory_order_seq_cst) != 1) return;
    const std::uint64_t one = 1;
    if (::write(eventfd_, &one, sizeof one) < 0) Die("eventfd");
  }

  std::uint32_t Word() const { return board_->gates[3].word.load(std::memory_order_acquire); }

  void WaitAtGate() {
    ledger_->devices[3].waiters.fetch_add(1, std::memory_order_seq_cst);
    for (;;) {
      const std::uint32_t word = Word();
      const std::uint64_t lease = board_->control.lease_until_ns.load(std::memory_order_relaxed);
      if ((word & abi::kHeld) == 0 || NowNs() >= lease) break;
      const timespec until{static_cast<time_t>(lease / 1'000'000'000u), static_cast<long>(lease % 1'000'000'000u)};
      ::syscall(SYS_futex, &board_->gates[3].word, FUTEX_WAIT_BITSET, word, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
    }
    ledger_->devices[3].waiters.fetch_sub(1, std::memory_order_relaxed);
  }

  const PreambleWelcome& Welcome() const { return welcome_; }

 private:
  PreambleWelcome welcome_{};
  const abi::Board* board_ = nullptr;
  abi::Ledger* ledger_ = nullptr;
  int eventfd_ = -1;
  std::unique_ptr<v1::ClientSession::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::DaemonMessage>> stream_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int fd = Connect(std::string(argv[1]) + "/client.sock");
  static Client client;  // no destructor of gRPC's before the end
  if (!client.Greet(fd)) {
    std::cout << "refused " << static_cast<std::uint32_t>(client.Welcome().status) << ' '
              << client.Welcome().abi_version << std::endl;
    return 0;
  }
  client.StartSession(fd, std::atoi(argv[2]));
  std::cout << "connected " << client.Welcome().abi_version << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer = "done";
    if (line == "busy") {
      client.Report(abi::TransitionKind::kBusy);
    } else if (line == "idle") {
      client.Report(abi::TransitionKind::kIdle);
    } else if (line == "wait") {
      client.WaitAtGate();
      answer = "through";
    } else {
      const std::uint32_t word = client.Word();
      answer = (word & abi::kHeld) != 0 ? "held" : ((word & abi::kTracked) != 0 ? "tracked" : "open");
    }
    std::cout << answer << std::endl;
  }
  std::cout.flush();
  ::_exit(0);
}
