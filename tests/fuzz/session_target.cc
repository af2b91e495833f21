// The daemon's end of sessions: connections, sequences of ClientMessage in any order, writes to ledgers, streams that
// end. Everything except gRPC is the daemon's own: handshake, session, registry, scheduler.
// Properties: messages to a client are short and printable; what is kept about it is bounded; all is forgotten when it
// has left.
#include "daemon/sessions/session_reactor.h"
#include "tests/fake_stream.h"
#include "tests/fuzz/equip.h"
#include "tests/fuzz/quiet.h"
#include "tests/fuzz/shim_end.h"

namespace {

using namespace xschedd;

// Checks each message to the client, and keeps none.
class CheckedStream : public test::FakeStream {
 public:
  void StartWrite(const v1::DaemonMessage* message) {
    FakeStream::StartWrite(message);
    said.clear();
    FUZZ_CHECK(message->ByteSizeLong() < 4096);
    FUZZ_CHECK(!message->has_notice() || fuzz::IsOneLine(message->notice().text(), 1024));
  }
  void Finish(const grpc::Status& status) {
    FakeStream::Finish(status);
    FUZZ_CHECK(fuzz::IsOneLine(status.error_message(), 1024));
  }
};

class World {
 public:
  World()
      : quotas_(SmallQuota().quota),
        core_(io_, {"/nonexistent/xschedd.toml", true, ""}, SmallQuota()),
        state_(io_, core_, store_),
        connections_(
            io_, quotas_,
            {[this](const Connection& connection) { adopted_ = connection.fd; }, [this](Connection& c) { Gone(c); },
             [this](const Principal& who, const std::string& why) { core_.Refused(who, why); }, &fuzz::Equip,
             [](Connection&) {}}),
        host_{io_, core_, connections_, commands_, quotas_, state_} {}

  ~World() {
    for (Slot& slot : slots_)
      EndStream(slot);
    connections_.CloseAll();
    for (Slot& slot : slots_) {
      if (slot.grpc_fd >= 0) ::close(slot.grpc_fd);
    }
    Poll();
    FUZZ_CHECK(core_.Clients().Clients().empty() && core_.Clients().Devices().empty());
    FUZZ_CHECK(sessions_.empty());
    core_.Stop();
    Poll();
  }

  void Run(fuzz::Input& input) {
    while (!input.IsEmpty())
      Step(input);
    Check();
  }

 private:
  using Session = SessionReactor<CheckedStream>;
  struct Slot {
    fuzz::ShimEnd shim;
    int grpc_fd = -1;
    Session* session = nullptr;
  };

  static Config SmallQuota() {
    Config config;
    config.quota.queues_per_client = 8;
    config.software_gpu = true;
    return config;
  }

  void Poll() {
    io_.restart();
    io_.poll();
  }

  void Gone(Connection& connection) { core_.RemoveClient(connection.client_id, "its connection is closed"); }

  void Open(Slot& slot, bool is_shim) {
    if (slot.grpc_fd >= 0) return;
    adopted_ = -1;
    connections_.Accept(slot.shim.Connect(is_shim), false);
    Poll();
    slot.shim.TakeWelcome();
    slot.grpc_fd = adopted_;
  }

  void Begin(Slot& slot) {
    if (slot.grpc_fd < 0 || slot.session != nullptr) return;
    slot.session = new Session(host_, sessions_, false, "fd:" + std::to_string(slot.grpc_fd));
    Poll();
  }

  void Receive(Slot& slot, v1::ClientMessage message, bool ok) {
    if (slot.session == nullptr || slot.session->reading == nullptr) return;
    *std::exchange(slot.session->reading, nullptr) = std::move(message);
    slot.session->OnReadDone(ok);
    Poll();
  }

  void Written(Slot& slot) {
    if (slot.session == nullptr || !slot.session->is_writing) return;
    slot.session->is_writing = false;
    slot.session->OnWriteDone(true);
    Poll();
  }

  void EndStream(Slot& slot) {
    if (slot.session == nullptr) return;
    slot.session->OnCancel();
    Poll();
    FUZZ_CHECK(slot.session->is_finished);
    // As gRPC does it: operations in progress fail, then the reactor ends.
    if (std::exchange(slot.session->is_writing, false)) slot.session->OnWriteDone(false);
    if (std::exchange(slot.session->reading, nullptr) != nullptr) slot.session->OnReadDone(false);
    slot.session->OnDone();
    Poll();
    slot.session = nullptr;
  }

  void Close(Slot& slot) {
    EndStream(slot);
    if (slot.grpc_fd >= 0) connections_.Close(slot.grpc_fd);
    if (slot.grpc_fd >= 0) ::close(std::exchange(slot.grpc_fd, -1));
    slot.shim.Reset();
    Poll();
  }

  void Step(fuzz::Input& input) {
    const std::uint8_t op = input.Byte();
    Slot& slot = slots_[(op >> 5) % 3];
    switch (op & 0x1f) {
      case 0:
        return Open(slot, true);
      case 1:
        return Open(slot, false);
      case 2:
        return Begin(slot);
      case 3:
        return EndStream(slot);
      case 4:
        return Close(slot);
      case 5:
        return Written(slot);
      case 6:
        return Receive(slot, {}, false);
      case 7:
        slot.shim.Write(input.Take<std::uint16_t>(), input.Take<std::uint32_t>());
        return Poll();
      case 8:
        slot.shim.Report(input.Byte() % 64, input.Flag());
        return Poll();
      case 9:
        for (const auto& [client, session] : ConfigurationSinks(sessions_))
          session->SendConfiguration();
        return Poll();
      case 10: {  // any hello, but with the right token
        v1::ClientMessage message;
        const std::string_view bytes = input.Piece();
        if (!message.mutable_hello()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
        message.mutable_hello()->set_token(slot.shim.Token());
        return Receive(slot, std::move(message), true);
      }
      case 11:
        for (int i = 0; i < 40; ++i)
          Written(slot);
        return;
      default: {
        v1::ClientMessage message;
        const std::string_view bytes = input.Piece();
        const bool ok = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
        return Receive(slot, std::move(message), ok);
      }
    }
  }

  void Check() {
    for (const auto& [id, client] : core_.Clients().Clients()) {
      FUZZ_CHECK(client->queues.size() <= 8 && client->passed.size() <= kMaxPassedRules);
      FUZZ_CHECK(client->attachments.size() <= abi::kMaxDevices);
      FUZZ_CHECK(IsPriority(client->effective.priority));
      for (const std::string& text :
           {client->group->name, client->runtime, client->route, client->version, client->identity.exe})
        FUZZ_CHECK(fuzz::IsOneLine(text, 1024));
      for (const auto& [rule, count] : client->passed)
        FUZZ_CHECK(fuzz::IsOneLine(rule, 256));
    }
    for (const auto& [address, device] : core_.Clients().Devices()) {
      FUZZ_CHECK(fuzz::IsOneLine(address, 32) && fuzz::IsOneLine(device->name, 256));
      FUZZ_CHECK(!device->attachments.empty());
    }
  }

  Quotas quotas_;
  boost::asio::io_context io_;  // ends before the quotas: its handlers keep connections
  Core core_;
  ServiceManager manager_;  // absent
  DescriptorStore store_{manager_};
  PersistentState state_;
  Connections connections_;
  CommandReader commands_;
  Host host_;
  ConfigurationSinks sessions_;
  int adopted_ = -1;
  Slot slots_[3];
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::BeQuiet();
  fuzz::Input input(data, size);
  World world;
  world.Run(input);
  return 0;
}
