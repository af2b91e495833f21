#include "tools/bench/hostile/attacks.h"

#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "common/clock.h"
#include "common/preamble_client.h"
#include "common/runtime_dir.h"
#include "common/unix_socket.h"
#include "tools/bench/gate/fake_client.h"

namespace xschedd::bench {
namespace {

constexpr int kAnswerLimitMs = 10'000;
constexpr std::size_t kGiant = 200'000;  // just below gRPC's limit for one message

void Note(Count& count) {
  count.fetch_add(1, std::memory_order_relaxed);
}

UniqueFd ConnectTo(const Target& target, int flags = 0) {
  return ConnectUnix(ClientSocketPath(target.runtime_dir), flags);
}

std::unique_ptr<FakeClient> Session(const Target& target, int priority = 0) {
  auto client = FakeClient::Connect(target.runtime_dir, priority, "", {target.device, "no device (hostile)"});
  if (client) return std::move(*client);
  ::usleep(100'000);
  return nullptr;
}

void Wake(const FakeClient& client) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(client.EventFd(), &one, sizeof one);
}

// ---- through shared memory

void Eventfd(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  for (;; Note(count))
    Wake(*client);
}

void RingGarbage(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  abi::Ledger& ledger = client->RawLedger();
  for (std::uint64_t i = 0;; ++i, Note(count)) {
    ledger.ring[i % abi::kRingSize] = {i, static_cast<std::uint32_t>(i % 5), static_cast<std::uint32_t>(i * 7919)};
    ledger.devices[i % abi::kMaxDevices].busy.store(static_cast<std::uint32_t>(i));
    ledger.devices[i % abi::kMaxDevices].gpu_time_ns.store(i * 0x9e3779b97f4a7c15u);
    ledger.control.ring_head.store(i);
    if (i % 64 == 0) Wake(*client);
  }
}

void HeadJumps(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  abi::Ledger& ledger = client->RawLedger();
  for (std::uint64_t i = 1;; ++i, Note(count)) {
    ledger.control.ring_head.store(i * 0x123456789u);
    ledger.control.lost.fetch_add(i);
    ledger.devices[0].waiters.store(static_cast<std::uint32_t>(i));
    Wake(*client);
  }
}

void Flapping(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  for (bool busy = true;; busy = !busy, Note(count))
    client->ReportBusy(busy);
}

void AlwaysBusy(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  for (;; Note(count)) {
    client->ReportBusy(true);
    ::usleep(10'000);
  }
}

void DeadlineNow(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  for (;; Note(count)) {
    client->RawLedger().devices[0].deadline_ns.store(MonotonicNs());
    client->ReportBusy(true);
  }
}

// ---- through the session

void Hints(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  v1::ClientMessage message;
  for (int i = 0;; ++i, Note(count)) {
    message.mutable_hint()->set_priority(i % 100 - 100);
    if (!client->Send(message)) return;
  }
}

void Queues(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  for (std::uint64_t i = 0;; ++i, Note(count)) {
    v1::ClientMessage message;
    if (i % 2 == 0) {
      message.mutable_queue_created()->set_queue(i);
    } else {
      message.mutable_queue_destroyed()->set_queue(i - 1);
    }
    if (!client->Send(message)) return;
  }
}

void Activity(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  v1::ClientMessage message;
  for (std::uint64_t i = 0; i < 5'000; ++i)
    message.mutable_activity()->add_queues()->set_queue(i);
  while (client->Send(message))
    Note(count);
}

void GiantStrings(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  v1::ClientMessage message;
  message.mutable_device_attached()->set_slot(1);
  message.mutable_device_attached()->set_pci_address(std::string(kGiant, '\n'));
  while (client->Send(message))
    Note(count);
}

// Every message causes a notice, and none is read.
void NeverReads(const Target& target, Count& count) {
  const auto client = Session(target);
  if (client == nullptr) return;
  v1::ClientMessage message;
  message.mutable_hint()->set_priority(-1000);
  while (client->Send(message))
    Note(count);
}

void Streams(const Target& target, Count& count) {
  UniqueFd socket = ConnectTo(target, SOCK_NONBLOCK);
  if (!socket.IsValid()) return;
  const auto stub = v1::ClientSession::NewStub(grpc::CreateInsecureChannelFromFd("xschedd", socket.Release()));
  for (;; Note(count)) {
    grpc::ClientContext contexts[16];
    std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::DaemonMessage>> streams[16];
    for (int i = 0; i < 16; ++i)
      streams[i] = stub->Session(&contexts[i]);
    bool any = false;
    for (int i = 0; i < 16; ++i) {
      v1::ClientMessage message;
      message.mutable_hello();
      any = streams[i]->Write(message) || any;
      contexts[i].TryCancel();
      (void)streams[i]->Finish();
    }
    if (!any) return;
  }
}

// ---- before there is a session

void Reconnects(const Target& target, Count& count) {
  for (;; Note(count)) {
    const UniqueFd socket = ConnectTo(target);
    if (!socket.IsValid()) return;
    (void)SayHello(socket.Get(), MakeHello(), kAnswerLimitMs);
  }
}

void Sessions(const Target& target, Count& count) {
  while (Session(target, -50) != nullptr)
    Note(count);
}

void HalfPreambles(const Target& target, Count& count) {
  UniqueFd sockets[64];
  for (std::size_t i = 0;; i = (i + 1) % 64, Note(count)) {
    sockets[i] = ConnectTo(target);
    if (!sockets[i].IsValid()) return;
    [[maybe_unused]] const ssize_t sent = ::send(sockets[i].Get(), "XSH", 3, MSG_NOSIGNAL);
    if (i % 8 == 7) ::usleep(10'000);
  }
}

// A gRPC client that never completes its preface: on many connections, a byte now and then.
void Slowly(const Target& target, Count& count) {
  constexpr std::string_view kStart = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  constexpr std::size_t kConnections = 32;
  UniqueFd sockets[kConnections];
  std::size_t sent[kConnections] = {};
  for (;;) {
    for (std::size_t i = 0; i < kConnections; ++i) {
      if (!sockets[i].IsValid()) {
        sockets[i] = ConnectTo(target, SOCK_NONBLOCK);
        sent[i] = 0;
      }
      const char byte = sent[i] < kStart.size() ? kStart[sent[i]] : '\0';
      if (::send(sockets[i].Get(), &byte, 1, MSG_NOSIGNAL) != 1) sockets[i].Reset();
      ++sent[i];
      Note(count);
    }
    ::usleep(20'000);
  }
}

}  // namespace

const std::vector<Attack>& Attacks() {
  static const std::vector<Attack> kAll = {
      {"eventfd", Eventfd},       {"ring", RingGarbage},       {"head", HeadJumps},
      {"flapping", Flapping},     {"busy", AlwaysBusy},        {"deadline", DeadlineNow},
      {"hints", Hints},           {"queues", Queues},          {"activity", Activity},
      {"giant", GiantStrings},    {"never-reads", NeverReads}, {"streams", Streams},
      {"reconnects", Reconnects}, {"sessions", Sessions},      {"half", HalfPreambles},
      {"slowly", Slowly},
  };
  return kAll;
}

}  // namespace xschedd::bench
