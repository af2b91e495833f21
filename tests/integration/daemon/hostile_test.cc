// Peers that send invalid or too many messages. The real daemon, over its real sockets.
#include <grpcpp/create_channel.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"

using namespace xschedd;
using namespace xschedd::test;

TEST_CASE("garbage on a socket harms no other client") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  const std::string junk(4096, 'x');
  for (const std::string& bytes :
       {std::string("XS"), std::string("XSH1"), std::string("XSH1short"), junk,
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + junk, std::string("\0\0\0\0", 4)}) {
    for (const char* name : {"/client.sock", "/admin.sock"}) {
      const UniqueFd socket = ConnectTo(daemon.Dir() + name);
      REQUIRE(socket.IsValid());
      ::send(socket.Get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }
  SECTION("another version is refused with that reason") {
    const UniqueFd socket = ConnectTo(daemon.Dir() + "/client.sock");
    PreambleHello hello = MakeHello();
    hello.abi_version = 999;
    const auto welcomed = SayHello(socket.Get(), hello, kAnswerLimitMs);
    REQUIRE(welcomed);
    CHECK(welcomed->welcome.status == PreambleStatus::kVersionMismatch);
    CHECK(!welcomed->descriptors[0].IsValid());
  }
  SECTION("a hello in pieces is understood") {
    const UniqueFd socket = ConnectTo(daemon.Dir() + "/client.sock");
    const PreambleHello hello = MakeHello();
    const char* bytes = reinterpret_cast<const char*>(&hello);
    REQUIRE(::send(socket.Get(), bytes, 3, MSG_NOSIGNAL) == 3);
    ShortSleep();
    REQUIRE(::send(socket.Get(), bytes + 3, 10, MSG_NOSIGNAL) == 10);
    ShortSleep();
    REQUIRE(::send(socket.Get(), bytes + 13, 3, MSG_NOSIGNAL) == 3);
    PreambleWelcome welcome{};
    REQUIRE(::recv(socket.Get(), &welcome, sizeof welcome, MSG_WAITALL) == static_cast<ssize_t>(sizeof welcome));
    CHECK(welcome.status == PreambleStatus::kOk);
  }
  SECTION("another token is refused") {
    FakeShim liar(daemon.Dir(), FakeShim::Options{0, {}, true, "0123456789abcdef"});
    CHECK(!liar.HasSession());
    CHECK(liar.Finish().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  }
  SECTION("a hint out of range is refused") {
    FakeShim liar(daemon.Dir(), 101);
    CHECK(!liar.HasSession());
    const grpc::Status status = liar.Finish();
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK(status.error_message() == "priority hint 101 is out of range; give a number from -100 to 100");
  }
  SECTION("a wrong message is ignored, and the session goes on") {
    shim.Attach(64, kGpu);
    CHECK(shim.NextNotice() == "device slot 64 is out of range; use slots 0 to 63");
    shim.Attach(0, "elsewhere");
    CHECK(shim.NextNotice().find("is not a PCI address") != std::string::npos);
    shim.Send(v1::ClientMessage());
    CHECK(!shim.NextNotice().empty());
    v1::ClientMessage hint;
    hint.mutable_hint()->set_priority(-1000);
    shim.Send(hint);
    CHECK(shim.NextNotice().find("out of range") != std::string::npos);
    hint.mutable_hint()->set_priority(9);
    shim.Send(hint);
    REQUIRE(Eventually([&] { return Find(daemon, shim.Welcome().client_id())->priority_effective() == 9; }));
  }
  CHECK(Find(daemon, shim.Welcome().client_id()).has_value());
}

TEST_CASE("a hostile ledger hurts only its owner") {
  DaemonProcess daemon;
  FakeShim high(daemon.Dir(), 50);
  FakeShim low(daemon.Dir(), 0);
  FakeShim hostile(daemon.Dir(), -50);
  for (FakeShim* shim : {&high, &low, &hostile})
    shim->Attach(0, kGpu);
  REQUIRE(Eventually([&] { return hostile.IsTracked(0); }));
  abi::Ledger& ledger = *hostile.RawLedger();
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    ledger.ring[i % abi::kRingSize] = {i, static_cast<std::uint32_t>(i % 5), static_cast<std::uint32_t>(i * 7919)};
    ledger.control.ring_head.store(i % 3 == 0 ? i * 0x123456789ull : i);
    ledger.control.lost.fetch_add(i);
    ledger.devices[i % abi::kMaxDevices].waiters.store(0xffffffff);
    ledger.devices[i % abi::kMaxDevices].busy.store(static_cast<std::uint32_t>(i));
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = ::write(hostile.EventFd(), &one, sizeof one);
  }
  low.Report(0, true);
  high.Report(0, true);
  REQUIRE(Eventually([&] { return low.IsHeld(0); }));
  high.Report(0, false);
  REQUIRE(Eventually([&] { return !low.IsHeld(0); }));
}

TEST_CASE("a plain gRPC client works: all of Admin on admin.sock only, a session on either") {
  DaemonProcess daemon;
  grpc::ClientContext context;
  v1::GetVersionResponse version;
  REQUIRE(daemon.Admin().GetVersion(&context, {}, &version).ok());
  CHECK(version.pid() == static_cast<std::uint64_t>(daemon.Pid()));
  CHECK(version.layout_hash() == abi::kLayoutHash);

  const auto stub = v1::Admin::NewStub(
      grpc::CreateChannel("unix:" + daemon.Dir() + "/client.sock", grpc::InsecureChannelCredentials()));
  grpc::ClientContext denied;
  v1::Stats stats;
  const grpc::Status status = stub->GetStats(&denied, {}, &stats);
  CHECK(status.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(status.error_message().find("admin.sock") != std::string::npos);

  FakeShim plain(daemon.Dir(), FakeShim::Options{3, {}, false, {}});
  REQUIRE(plain.HasSession());
  CHECK(plain.NextNotice().find("no shared memory") != std::string::npos);
  CHECK(Find(daemon, plain.Welcome().client_id())->priority_effective() == 3);
}
