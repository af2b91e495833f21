// Sessions that differ from the shim's. The real daemon, over its real sockets.
#include <grpcpp/create_channel.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"
#include "tests/integration/daemon/high_and_low.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

// A connection without a preamble, and streams on it.
class PlainConnection {
 public:
  explicit PlainConnection(const DaemonProcess& daemon) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    stub_ = v1::ClientSession::NewStub(grpc::CreateCustomChannel("unix:" + daemon.Dir() + "/client.sock",
                                                                 grpc::InsecureChannelCredentials(), arguments));
  }

  class Stream {
   public:
    explicit Stream(v1::ClientSession::Stub& stub) : stream_(stub.Session(&context_)) {}
    ~Stream() { End(); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void Send(const v1::ClientMessage& message) { stream_->Write(message); }
    std::optional<v1::DaemonMessage> Read() {
      v1::DaemonMessage message;
      return stream_->Read(&message) ? std::optional(message) : std::nullopt;
    }
    std::string NextNotice() {
      while (const auto message = Read()) {
        if (message->has_notice()) return message->notice().text();
      }
      return {};
    }
    // The status with which the daemon ended it.
    grpc::Status End() {
      if (ended_) return grpc::Status::OK;
      ended_ = true;
      stream_->WritesDone();
      while (Read()) {
      }
      return stream_->Finish();
    }
    void Cancel() { context_.TryCancel(); }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::DaemonMessage>> stream_;
    bool ended_ = false;
  };

  std::unique_ptr<Stream> Open() { return std::make_unique<Stream>(*stub_); }

 private:
  std::unique_ptr<v1::ClientSession::Stub> stub_;
};

v1::ClientMessage Hello() {
  v1::ClientMessage message;
  message.mutable_hello()->set_client_version("test");
  return message;
}

v1::ClientMessage HintOf(int priority) {
  v1::ClientMessage message;
  message.mutable_hint()->set_priority(priority);
  return message;
}

}  // namespace

TEST_CASE("a session begins with hello, and each connection has one") {
  DaemonProcess daemon;
  PlainConnection connection(daemon);
  const auto stream = connection.Open();
  SECTION("another message comes first") {
    stream->Send(HintOf(3));
    const grpc::Status status = stream->End();
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK(status.error_message() == "the first message is not a hello; send a hello first");
  }
  SECTION("an unknown token") {
    v1::ClientMessage hello = Hello();
    hello.mutable_hello()->set_token("0123456789abcdef");
    stream->Send(hello);
    CHECK(stream->End().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  }
  SECTION("wrong hints") {
    v1::ClientMessage hello = Hello();
    hello.mutable_hello()->set_deadline_us(0xffffffffffff);
    stream->Send(hello);
    CHECK(stream->End().error_message().find("deadline hint 281474976710655 us is out of range") == 0);
  }
  SECTION("no message at all") {
    CHECK(stream->End().ok());
  }
  SECTION("cancelled by the client") {
    stream->Cancel();
    CHECK(stream->End().error_code() == grpc::StatusCode::CANCELLED);
  }
  SECTION("hints may be left out, or given with it") {
    v1::ClientMessage hello = Hello();
    hello.mutable_hello()->set_weight(250);
    hello.mutable_hello()->set_deadline_us(5'000);
    stream->Send(hello);
    const auto answer = stream->Read();
    REQUIRE(answer);
    REQUIRE(answer->has_welcome());
    const auto listed = Find(daemon, answer->welcome().client_id());
    REQUIRE(listed);
    CHECK(listed->weight() == 250);
    CHECK(!listed->has_priority_hint());
    CHECK(listed->priority_source() == v1::PRIORITY_SOURCE_UNSPECIFIED);
    CHECK(stream->NextNotice().find("no shared memory") != std::string::npos);

    const auto second = connection.Open();
    second->Send(Hello());
    CHECK(second->End().error_code() == grpc::StatusCode::ALREADY_EXISTS);
    CHECK(List(daemon).clients_size() == 1);
    stream->Send(Hello());
    CHECK(stream->NextNotice() == "a second hello was ignored; send one hello per session");
    CHECK(stream->End().ok());
    CHECK(Eventually([&] { return List(daemon).clients_size() == 0; }));
  }
  CHECK(Eventually([&] { return List(daemon).clients_size() == 0; }));
}

TEST_CASE("a shim's connection serves its session alone, and another call ends nothing") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 3);
  const auto admin = v1::Admin::NewStub(shim.Channel());
  grpc::ClientContext context;
  v1::GetVersionResponse version;
  CHECK(admin->GetVersion(&context, {}, &version).error_code() == grpc::StatusCode::UNIMPLEMENTED);
  shim.Attach(0, kGpu);
  CHECK(Eventually([&] { return Find(daemon, shim.Welcome().client_id())->devices_size() == 1; }));
}

TEST_CASE("a client without shared memory is listed, but neither gated nor held") {
  DaemonProcess daemon;
  FakeShim plain(daemon.Dir(), FakeShim::Options{std::nullopt, {}, false, {}});
  plain.Attach(0, kGpu);
  REQUIRE(Eventually([&] { return Find(daemon, plain.Welcome().client_id())->devices_size() == 1; }));
  v1::HoldRequest hold;
  hold.mutable_selector()->set_all(true);
  hold.set_dry_run(true);
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::ChangeResponse response;
    REQUIRE(daemon.Admin().Hold(&context, hold, &response).ok());
    REQUIRE(response.changes_size() == 1);
    CHECK(response.changes(0).note() == "cannot be held: it has no shared memory");
    hold.set_dry_run(false);
  }
}

TEST_CASE("queues and their counts are those that the client reports") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  shim.Attach(0, kGpu);
  shim.CreateQueue(7);
  v1::ClientMessage message;
  v1::ActivityBatch& batch = *message.mutable_activity();
  for (const std::uint64_t id : {7, 8}) {  // 8 was never made
    auto& queue = *batch.add_queues();
    queue.set_queue(id);
    queue.set_launches(10);
    queue.set_completions(4);
  }
  shim.Send(message);
  shim.Send(message);
  REQUIRE(Eventually([&] {
    const auto client = Find(daemon, shim.Welcome().client_id());
    return client->queues_size() == 1 && client->queues(0).launches() == 20 && client->queues(0).completions() == 8;
  }));
  message.Clear();
  message.mutable_queue_destroyed()->set_queue(8);
  shim.Send(message);
  CHECK(shim.NextNotice().find("queue 8 is not known") == 0);
  message.mutable_queue_destroyed()->set_queue(7);
  shim.Send(message);
  CHECK(Eventually([&] { return Find(daemon, shim.Welcome().client_id())->queues_size() == 0; }));
}

TEST_CASE("a client over its message quota is read more slowly, and loses nothing") {
  DaemonProcess daemon;
  FakeShim loud(daemon.Dir(), 0);
  FakeShim quiet(daemon.Dir(), 0);
  v1::ClientMessage message;
  message.mutable_hint()->set_weight(1);
  for (int i = 0; i < 2'800; ++i)  // a burst of 2,500, then 200 a second
    loud.Send(message);
  loud.Send(HintOf(42));
  quiet.Send(HintOf(41));
  const auto priority = [&](const FakeShim& shim) {
    return Find(daemon, shim.Welcome().client_id())->priority_effective();
  };
  CHECK(Eventually([&] { return priority(quiet) == 41; }));
  CHECK(Eventually([&] { return priority(loud) == 42; }));
  // A client that leaves while it waits for its quota.
  PlainConnection connection(daemon);
  const auto stream = connection.Open();
  stream->Send(Hello());
  for (int i = 0; i < 2'800; ++i)
    stream->Send(message);
  stream->Cancel();
  CHECK(stream->End().error_code() == grpc::StatusCode::CANCELLED);
  CHECK(Eventually([&] { return List(daemon).clients_size() == 2; }));
}

TEST_CASE("a client that does not read loses its session, and delays no other") {
  std::string passthrough = "passthrough = [\n";
  for (int i = 0; i < 250; ++i)
    passthrough += "\"kernel:" + std::to_string(1'000 + i) + std::string(200, 'k') + "\",\n";
  passthrough += "]\n";
  DaemonProcess daemon(passthrough);
  FakeShim deaf(daemon.Dir(), 0);
  FakeShim other(daemon.Dir(), 0);
  const auto is_there = [&] { return Find(daemon, deaf.Welcome().client_id()).has_value(); };
  for (int wrong = 0; wrong < 200; ++wrong)
    deaf.Send(v1::ClientMessage());  // each is answered by a notice
  // Each reload sends 50 kB to each of them.
  for (int reloads = 0; reloads < 2'000 && is_there(); ++reloads) {
    grpc::ClientContext context;
    v1::ReloadResponse response;
    REQUIRE(daemon.Admin().Reload(&context, {}, &response).ok());
    REQUIRE(other.NextConfiguration());
  }
  CHECK(!is_there());
  CHECK(Find(daemon, other.Welcome().client_id()));
  CHECK(deaf.Finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_CASE("while the daemon is disabled, no session begins") {
  DaemonProcess daemon;
  PlainConnection connection(daemon);
  grpc::ClientContext context;
  v1::DisableResponse response;
  REQUIRE(daemon.Admin().Disable(&context, {}, &response).ok());
  const auto stream = connection.Open();
  stream->Send(Hello());
  const grpc::Status status = stream->End();
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message().find("the daemon is disabled") == 0);
}

TEST_CASE("the ledger of a held client shows whether it is passing") {
  DaemonProcess daemon;
  HighAndLow two(daemon.Dir());
  FakeShim &high = two.high, &low = two.low;
  low.Report(0, true);
  high.Report(0, true);
  REQUIRE(Eventually([&] { return low.IsHeld(0); }));
  const auto state = [&] { return Find(daemon, low.Welcome().client_id())->devices(0).state(); };
  abi::Ledger& ledger = *low.RawLedger();
  ledger.devices[0].in_flight = 2;
  CHECK(state() == v1::CLIENT_STATE_HELD);  // nothing was passed through
  ledger.devices[0].in_flight = 0;
  ledger.devices[0].passthrough = 3;
  CHECK(state() == v1::CLIENT_STATE_HELD);  // nothing in flight
  ledger.devices[0].in_flight = 2;
  CHECK(state() == v1::CLIENT_STATE_PASSING);
  ledger.devices[0].waiters = 1;
  CHECK(state() == v1::CLIENT_STATE_HELD);  // a thread of it waits
}
