// Clients' reports about themselves, as the real daemon lists them, over its real sockets.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"

using namespace xschedd;
using namespace xschedd::test;

TEST_CASE("a client's identity is the kernel's, and its reports are listed") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), FakeShim::Options{7, "job", true, {}});
  REQUIRE(shim.HasSession());
  CHECK(shim.Welcome().effective_priority() == 7);
  CHECK(shim.Welcome().lease_ms() == 100);
  shim.Attach(3, kGpu);
  shim.CreateQueue(42);
  REQUIRE(Eventually([&] {
    const auto client = Find(daemon, shim.Welcome().client_id());
    return client && client->queues_size() == 1 && !client->command().empty();
  }));
  const v1::Client client = *Find(daemon, shim.Welcome().client_id());
  CHECK(client.pid() == OwnPid());
  CHECK(client.uid() == ::getuid());
  CHECK(client.gid() == ::getgid());
  CHECK(client.group() == "job");
  CHECK(client.priority_hint() == 7);
  CHECK(client.priority_effective() == 7);
  CHECK(client.priority_source() == v1::PRIORITY_SOURCE_HINT);
  CHECK(client.exe().find("daemon_integration") != std::string::npos);
  REQUIRE(client.devices_size() == 1);
  CHECK(client.devices(0).slot() == 3);
  CHECK(client.devices(0).device() == kGpu);
  CHECK(client.devices(0).state() == v1::CLIENT_STATE_UNTRACKED);
  CHECK(client.queues(0).id() == 42);
  CHECK(!shim.IsTracked(3));
}

TEST_CASE("calls that a client reports as passed are listed and explained, up to a limit") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  shim.Attach(0, kGpu);
  v1::ClientMessage message;
  for (int rule = 0; rule < 100; ++rule) {
    auto& passed = *message.mutable_activity()->add_passed();
    passed.set_rule("kernel:\x1b" + std::to_string(1000 + rule) + std::string(1000, 'x'));
    passed.set_count(2);
  }
  shim.Send(message);
  shim.Send(message);
  const auto passed = [&] { return Find(daemon, shim.Welcome().client_id())->passed(); };
  REQUIRE(Eventually([&] { return !passed().empty() && passed().Get(0).count() == 4; }));
  CHECK(passed().size() == 64);
  CHECK(passed().Get(0).rule().size() <= 256);
  CHECK(passed().Get(0).rule().find('\x1b') == std::string::npos);
  grpc::ClientContext context;
  v1::ExplainRequest request;
  request.set_pid(OwnPid());
  v1::ExplainResponse response;
  REQUIRE(daemon.Admin().Explain(&context, request, &response).ok());
  CHECK(response.passed_size() == 64);
}

TEST_CASE("a killed client is removed and no longer counts") {
  DaemonProcess daemon;
  FakeShim low(daemon.Dir(), 0);
  low.Attach(0, kGpu);
  const std::string output = daemon.Dir() + "/output";
  const char* const program = std::getenv("XSCHEDD_FAKE_CLIENT");  // set by meson
  REQUIRE(program != nullptr);
  const pid_t client = Spawn({program, daemon.Dir(), "50", kGpu}, output);
  REQUIRE(Eventually([&] { return ReadFile(output) == "ready\n" && low.IsHeld(0); }));
  const v1::ListClientsResponse list = List(daemon);
  CHECK(std::any_of(list.clients().begin(), list.clients().end(),
                    [&](const v1::Client& c) { return c.pid() == static_cast<std::uint64_t>(client); }));
  ::kill(client, SIGKILL);
  REQUIRE(Eventually([&] { return !low.IsHeld(0) && !low.IsTracked(0); }));
  CHECK(List(daemon).clients_size() == 1);
  Reap(client);
}

TEST_CASE("work that finished after its deadline is reported") {
  DaemonProcess daemon;
  FakeShim other(daemon.Dir(), 50);
  FakeShim shim(daemon.Dir(), 0);
  other.Attach(0, kGpu);
  shim.Attach(0, kGpu);
  REQUIRE(Eventually([&] { return shim.IsTracked(0); }));
  shim.RawLedger()->devices[0].deadline_ns = 1;  // long ago
  shim.Report(0, true);
  REQUIRE(Eventually(
      [&] { return Find(daemon, shim.Welcome().client_id())->devices(0).state() == v1::CLIENT_STATE_RUNNING; }));
  shim.Report(0, false);
  grpc::ClientContext context;
  v1::WatchEventsRequest request;
  request.set_replay(true);
  const auto reader = daemon.Admin().WatchEvents(&context, request);
  v1::Event event;
  while (reader->Read(&event) && event.kind() != v1::EVENT_KIND_LATE) {
  }
  CHECK(event.client_id() == shim.Welcome().client_id());
  CHECK(event.device() == kGpu);
  CHECK(event.reason().find(" ms after its deadline") != std::string::npos);
  context.TryCancel();
}
