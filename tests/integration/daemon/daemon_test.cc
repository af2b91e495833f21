// The real daemon, over its real sockets. Nothing here depends on how long something takes; conditions are waited for.
#include <grpcpp/create_channel.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "daemon/policy/types.h"
#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"

using namespace xschedd;
using namespace xschedd::test;

TEST_CASE("a client is who the kernel says, and is listed with all it said") {
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

TEST_CASE("the less important of two clients is held while the other is busy") {
  DaemonProcess daemon;
  FakeShim high(daemon.Dir(), 50);
  FakeShim low(daemon.Dir(), -10);
  high.Attach(0, kGpu);
  low.Attach(5, kGpu);
  REQUIRE(Eventually([&] { return high.IsTracked(0) && low.IsTracked(5); }));
  CHECK(!low.IsHeld(5));
  CHECK(low.WindowUs(5) == 500);
  CHECK(high.WindowUs(0) == 20'000);

  low.Report(5, true);
  high.Report(0, true);
  REQUIRE(Eventually([&] { return low.IsHeld(5); }));
  CHECK(!high.IsHeld(0));
  const auto held = Find(daemon, low.Welcome().client_id());
  REQUIRE(held);
  CHECK(held->devices(0).state() == v1::CLIENT_STATE_HELD);
  CHECK(held->devices(0).held_for() == "pid " + std::to_string(OwnPid()));

  high.Report(0, false);
  REQUIRE(Eventually([&] { return !low.IsHeld(5); }));
  const v1::Stats stats = Stats(daemon);
  CHECK(stats.transitions_total() >= 3);
  CHECK(stats.decision_p99_ns() > 0);

  SECTION("a leaving client no longer counts") {
    high.Report(0, true);
    REQUIRE(Eventually([&] { return low.IsHeld(5); }));
    high.Finish();
    REQUIRE(Eventually([&] { return !low.IsHeld(5) && !low.IsTracked(5); }));
  }
  SECTION("a waiting thread is woken") {
    high.Report(0, true);
    REQUIRE(Eventually([&] { return low.IsHeld(5); }));
    high.Report(0, false);
    low.WaitAtGate(5);
    CHECK(!low.IsHeld(5));
  }
  SECTION("it can be explained afterwards") {
    grpc::ClientContext context;
    v1::ExplainRequest request;
    request.set_pid(OwnPid());
    v1::ExplainResponse response;
    REQUIRE(daemon.Admin().Explain(&context, request, &response).ok());
    REQUIRE(response.held_size() >= 1);
    CHECK(response.held(0).device() == kGpu);
    CHECK(response.held(0).reason().find("(priority 50) is busy") != std::string::npos);
    CHECK(response.held_ns() > 0);
    CHECK(response.summary().find("was held") != std::string::npos);
    // On a busy machine the time after the other's end may be the longer one: which cause comes first is not said.
    const auto cause = std::find_if(response.causes().begin(), response.causes().end(),
                                    [](const auto& one) { return one.rule() == "priority"; });
    REQUIRE(cause != response.causes().end());
    CHECK(cause->for_pid() == OwnPid());
    CHECK(response.remedies_size() >= 1);
    REQUIRE(response.devices_size() == 1);
    const auto& time = response.devices(0);
    CHECK(time.running_ns() + time.held_ns() + time.idle_ns() + time.untracked_ns() == time.observed_ns());
  }
}

TEST_CASE("what a client says was passed through is listed and explained, as much as is reasonable") {
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

TEST_CASE("a priority set by an administrator acts at once") {
  DaemonProcess daemon;
  FakeShim first(daemon.Dir(), FakeShim::Options{0, "first", true, {}});
  FakeShim second(daemon.Dir(), FakeShim::Options{0, "second", true, {}});
  first.Attach(0, kGpu);
  second.Attach(0, kGpu);
  REQUIRE(Eventually([&] { return List(daemon).devices_size() == 1 && List(daemon).devices(0).clients() == 2; }));
  CHECK(!first.IsTracked(0));

  v1::SetRequest request;
  request.mutable_selector()->set_group("first");
  request.set_priority(20);
  request.set_dry_run(true);
  v1::ChangeResponse response;
  {
    grpc::ClientContext context;
    REQUIRE(daemon.Admin().Set(&context, request, &response).ok());
    REQUIRE(response.changes_size() == 1);
    CHECK(response.changes(0).priority_before() == 0);
    CHECK(response.changes(0).priority_after() == 20);
    CHECK(!first.IsTracked(0));
  }
  request.set_dry_run(false);
  {
    grpc::ClientContext context;
    REQUIRE(daemon.Admin().Set(&context, request, &response).ok());
    CHECK(response.applied_ns() > 0);
    // Applied when it is answered.
    CHECK(first.IsTracked(0));
    CHECK(second.IsTracked(0));
  }
  first.Report(0, true);
  REQUIRE(Eventually([&] { return second.IsHeld(0); }));
  grpc::ClientContext context;
  v1::SetRequest reset;
  reset.mutable_selector()->set_all(true);
  reset.set_reset_priority(true);
  REQUIRE(daemon.Admin().Set(&context, reset, &response).ok());
  CHECK(response.changes_size() == 2);
  CHECK(!second.IsHeld(0));
  CHECK(!second.IsTracked(0));
}

TEST_CASE("a held client stays shut whatever its priority, until it is released") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 100);
  shim.Attach(0, kGpu);
  REQUIRE(Eventually([&] { return List(daemon).devices_size() == 1; }));
  v1::HoldRequest hold;
  hold.mutable_selector()->add_pid(OwnPid());
  v1::ChangeResponse response;
  {
    grpc::ClientContext context;
    REQUIRE(daemon.Admin().Hold(&context, hold, &response).ok());
    CHECK(response.changes(0).hold_after());
  }
  CHECK(shim.IsHeld(0));
  CHECK(Find(daemon, shim.Welcome().client_id())->devices(0).held_for() == "hold");
  // The lease is renewed for as long as it is held.
  for (int i = 0; i < 100; ++i) {
    CHECK(!shim.IsLeaseOver());
    ShortSleep();
  }
  v1::ReleaseRequest release;
  release.mutable_selector()->set_exe("daemon_integration");
  grpc::ClientContext context;
  REQUIRE(daemon.Admin().Release(&context, release, &response).ok());
  CHECK(!shim.IsHeld(0));
  CHECK(!shim.IsTracked(0));
}

TEST_CASE("a weight is set with or without a priority, and each is reset by itself") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 7);
  v1::SetRequest request;
  request.mutable_selector()->set_all(true);
  v1::ChangeResponse response;
  const auto set = [&] {
    grpc::ClientContext context;
    return daemon.Admin().Set(&context, request, &response);
  };
  const auto listed = [&] { return *Find(daemon, shim.Welcome().client_id()); };
  CHECK(set().error_message() == "nothing to set; give a priority, a weight or what to reset");
  request.set_weight(0);
  CHECK(set().error_message() == "weight 0 is out of range; give a number from 1 to 10000");
  request.set_weight(300);
  request.set_dry_run(true);
  REQUIRE(set().ok());
  CHECK(response.changes(0).weight_before() == 100);
  CHECK(response.changes(0).weight_after() == 300);
  CHECK(response.changes(0).priority_after() == 7);
  CHECK(listed().weight() == 100);
  request.set_dry_run(false);
  request.set_priority(-4);
  REQUIRE(set().ok());
  CHECK(listed().weight() == 300);
  CHECK(listed().priority_effective() == -4);
  request.set_reset_weight(true);
  CHECK(set().error_code() == grpc::StatusCode::INVALID_ARGUMENT);  // both set and reset
  request.clear_weight();
  request.clear_priority();
  REQUIRE(set().ok());
  CHECK(response.changes(0).weight_after() == 100);
  CHECK(listed().weight() == 100);
  CHECK(listed().priority_effective() == -4);
  request.set_reset_priority(true);
  REQUIRE(set().ok());
  CHECK(listed().priority_effective() == 7);
}

TEST_CASE("wrong requests get a clear answer") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  v1::SetRequest request;
  v1::ChangeResponse response;
  const auto set = [&] {
    grpc::ClientContext context;
    return daemon.Admin().Set(&context, request, &response);
  };
  request.set_priority(101);
  request.mutable_selector()->set_all(true);
  CHECK(set().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(set().error_message() == "priority 101 is out of range; give a number from -100 to 100");
  request.set_priority(1);
  request.mutable_selector()->Clear();
  CHECK(set().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_selector()->add_pid(1);
  CHECK(set().error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(set().error_message() == "no client fits pid 1; xschedctl ps shows who is connected");

  v1::SetPolicyRequest policy;
  v1::Policy answer;
  {
    grpc::ClientContext context;
    policy.set_name("best");
    CHECK(daemon.Admin().SetPolicy(&context, policy, &answer).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  }
  {
    grpc::ClientContext context;
    policy.set_name("fifo");
    policy.set_turn_ms(0);
    CHECK(daemon.Admin().SetPolicy(&context, policy, &answer).error_message() ==
          "turn_ms 0 is out of range; give a number from 1 to 1000");
  }
  grpc::ClientContext context;
  v1::Policy unchanged;
  REQUIRE(daemon.Admin().GetPolicy(&context, {}, &unchanged).ok());
  CHECK(unchanged.name() == "priority");
}

TEST_CASE("a policy change keeps priorities and acts at once") {
  DaemonProcess daemon;
  FakeShim high(daemon.Dir(), 50);
  FakeShim low(daemon.Dir(), 0);
  high.Attach(0, kGpu);
  low.Attach(0, kGpu);
  REQUIRE(Eventually([&] { return low.IsTracked(0); }));
  v1::SetPolicyRequest request;
  v1::Policy answer;
  request.set_name("fifo");
  {
    grpc::ClientContext context;
    REQUIRE(daemon.Admin().SetPolicy(&context, request, &answer).ok());
    CHECK(answer.name() == "fifo");
    CHECK(!low.IsTracked(0));
  }
  request.set_name("priority");
  grpc::ClientContext context;
  REQUIRE(daemon.Admin().SetPolicy(&context, request, &answer).ok());
  CHECK(low.IsTracked(0));
  CHECK(Find(daemon, high.Welcome().client_id())->priority_effective() == 50);
}

TEST_CASE("two groups never hold one device each") {
  DaemonProcess daemon;
  FakeShim first(daemon.Dir(), FakeShim::Options{10, "first", true, {}});
  FakeShim second(daemon.Dir(), FakeShim::Options{5, "second", true, {}});
  FakeShim third(daemon.Dir(), FakeShim::Options{20, "third", true, {}});
  first.Attach(0, kGpu);
  first.Attach(1, kOtherGpu);
  second.Attach(0, kGpu);
  second.Attach(1, kOtherGpu);
  third.Attach(1, kOtherGpu);
  REQUIRE(Eventually(
      [&] { return third.IsTracked(1) && second.IsTracked(0) && first.IsTracked(0) && first.IsTracked(1); }));
  for (const std::uint32_t slot : {0u, 1u}) {
    first.Report(slot, true);
    second.Report(slot, true);
  }
  REQUIRE(Eventually([&] { return second.IsHeld(0) && second.IsHeld(1) && !first.IsHeld(0) && !first.IsHeld(1); }));
  third.Report(1, true);
  REQUIRE(Eventually([&] { return first.IsHeld(0) && first.IsHeld(1) && second.IsHeld(0) && second.IsHeld(1); }));
}

TEST_CASE("a killed client is removed and no longer counts") {
  DaemonProcess daemon;
  FakeShim low(daemon.Dir(), 0);
  low.Attach(0, kGpu);
  const std::string output = daemon.Dir() + "/client";
  const char* const program = std::getenv("XSCHEDD_FAKE_CLIENT");  // meson says where it is
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

TEST_CASE("garbage on a socket harms nobody") {
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
  SECTION("another version is told so") {
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
  SECTION("a wrong message costs that message only") {
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

TEST_CASE("events tell what happened, in order") {
  DaemonProcess daemon;
  FakeShim early(daemon.Dir(), 1);
  grpc::ClientContext context;
  v1::WatchEventsRequest request;
  request.set_replay(true);
  const auto reader = daemon.Admin().WatchEvents(&context, request);
  v1::Event event;
  REQUIRE(reader->Read(&event));
  CHECK(event.kind() == v1::EVENT_KIND_CLIENT_CONNECTED);
  CHECK(event.client_id() == early.Welcome().client_id());
  REQUIRE(reader->Read(&event));
  CHECK(event.kind() == v1::EVENT_KIND_LIVE);
  FakeShim late(daemon.Dir(), 2);
  REQUIRE(reader->Read(&event));
  CHECK(event.kind() == v1::EVENT_KIND_CLIENT_CONNECTED);
  CHECK(event.client_id() == late.Welcome().client_id());
  CHECK(event.priority() == 2);
  late.Finish();
  REQUIRE(reader->Read(&event));
  CHECK(event.kind() == v1::EVENT_KIND_CLIENT_GONE);
  CHECK(event.unix_ms() > 0);
  context.TryCancel();
  while (reader->Read(&event)) {
  }
  CHECK(reader->Finish().error_code() == grpc::StatusCode::CANCELLED);
}

TEST_CASE("rules and ceilings limit what a client may ask for") {
  const std::string uid = std::to_string(::getuid());
  DaemonProcess daemon("[[ceiling]]\nuid = " + uid + "\npriority = 10\n[[rule]]\ngroup = \"batch\"\npriority = -30\n");
  FakeShim limited(daemon.Dir(), 50);
  CHECK(limited.Welcome().effective_priority() == 10);
  CHECK(limited.NextNotice() == "priority hint 50 limited to 10 by the ceiling of uid " + uid);
  FakeShim ruled(daemon.Dir(), FakeShim::Options{5, "batch", true, {}});
  CHECK(ruled.Welcome().effective_priority() == -30);
  v1::SetRequest request;
  request.mutable_selector()->set_group("batch");
  request.set_priority(90);
  v1::ChangeResponse response;
  grpc::ClientContext context;
  REQUIRE(daemon.Admin().Set(&context, request, &response).ok());
  CHECK(response.changes(0).priority_after() == 10);
  CHECK(response.changes(0).note() == "limited by the ceiling of uid " + uid);
}

TEST_CASE("hints of weight and deadline are taken, and told where they are wrong") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  const auto weight = [&] { return Find(daemon, shim.Welcome().client_id())->weight(); };
  v1::ClientMessage message;
  v1::Hint& hint = *message.mutable_hint();
  hint.set_weight(300);
  shim.Send(message);
  REQUIRE(Eventually([&] { return weight() == 300; }));
  // All of a message or nothing of it.
  hint.set_weight(400);
  hint.set_deadline_us(1'000);
  hint.set_queue(77);
  shim.Send(message);
  CHECK(shim.NextNotice().find("queue 77 is not known") == 0);
  hint.clear_queue();
  hint.set_weight(10'001);
  shim.Send(message);
  CHECK(shim.NextNotice() == "weight hint 10001 is out of range; give a number from 1 to 10000");
  hint.set_weight(500);
  hint.set_deadline_us(3'600'000'001);
  shim.Send(message);
  CHECK(shim.NextNotice().find("deadline hint 3600000001 us is out of range") == 0);
  CHECK(weight() == 300);
  hint.set_deadline_us(33'000);
  shim.Send(message);
  REQUIRE(Eventually([&] { return weight() == 500; }));
  shim.CreateQueue(5);
  hint.Clear();
  hint.set_deadline_us(0);
  hint.set_queue(5);
  shim.Send(message);
  hint.Clear();
  hint.set_weight(501);
  shim.Send(message);
  REQUIRE(Eventually([&] { return weight() == 501; }));
}

TEST_CASE("work that finished after its deadline is told") {
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

TEST_CASE("rules act on new clients, and at a reload on live ones") {
  DaemonProcess daemon("[[rule]]\ngroup = \"batch\"\nweight = 30\n");
  FakeShim first(daemon.Dir(), FakeShim::Options{5, "batch", true, {}});
  FakeShim second(daemon.Dir(), 7);
  FakeShim third(daemon.Dir(), 0);
  const auto find = [&](const FakeShim& shim) { return *Find(daemon, shim.Welcome().client_id()); };
  CHECK(find(first).weight() == 30);
  CHECK(find(first).priority_effective() == 5);  // the rule does not set it
  CHECK(find(second).weight() == 100);
  for (FakeShim* shim : {&first, &second, &third})
    shim->Attach(0, kGpu);
  REQUIRE(Eventually([&] { return first.IsTracked(0) && third.IsTracked(0); }));
  second.Report(0, true);
  REQUIRE(Eventually([&] { return first.IsHeld(0) && third.IsHeld(0); }));

  const std::string gid = std::to_string(::getgid());
  daemon.WriteConfig("[[rule]]\ngid = " + gid + "\nexe = \"daemon_integration\"\njoin = \"all\"\nweight = 70\n");
  grpc::ClientContext context;
  v1::ReloadResponse response;
  REQUIRE(daemon.Admin().Reload(&context, {}, &response).ok());
  // Answered when it acts: one group, which nobody outside stands against.
  CHECK(!first.IsHeld(0));
  CHECK(!third.IsTracked(0));
  for (const FakeShim* shim : {&first, &second, &third}) {
    CHECK(find(*shim).group() == "all");
    CHECK(find(*shim).weight() == 70);
  }
  CHECK(find(second).priority_hint() == 7);  // a rule forgets no hint
  FakeShim late(daemon.Dir(), FakeShim::Options{1, "its own", true, {}});
  CHECK(find(late).group() == "all");

  daemon.WriteConfig("");
  grpc::ClientContext again;
  REQUIRE(daemon.Admin().Reload(&again, {}, &response).ok());
  CHECK(find(first).group() == "batch");
  CHECK(find(late).group() == "its own");
  CHECK(find(first).weight() == 100);
  REQUIRE(Eventually([&] { return first.IsHeld(0); }));
}

TEST_CASE("every setting of the policy acts before it is answered, and forgets nothing") {
  DaemonProcess daemon;
  FakeShim high(daemon.Dir(), 50);
  FakeShim low(daemon.Dir(), FakeShim::Options{3, "low", true, {}});
  FakeShim lower(daemon.Dir(), FakeShim::Options{3, "lower", true, {}});
  for (FakeShim* shim : {&high, &low, &lower})
    shim->Attach(0, kGpu);
  REQUIRE(Eventually([&] { return high.IsTracked(0) && low.IsTracked(0) && lower.IsTracked(0); }));
  const auto set = [&](auto change) {
    v1::SetPolicyRequest request;
    change(request);
    grpc::ClientContext context;
    v1::Policy answer;
    REQUIRE(daemon.Admin().SetPolicy(&context, request, &answer).ok());
    return answer;
  };
  low.Report(0, true);
  lower.Report(0, true);
  REQUIRE(Eventually([&] {
    return Find(daemon, lower.Welcome().client_id())->devices(0).state() == v1::CLIENT_STATE_RUNNING &&
           Find(daemon, low.Welcome().client_id())->devices(0).state() == v1::CLIENT_STATE_RUNNING;
  }));
  SECTION("max_concurrent") {
    CHECK(!low.IsHeld(0));
    CHECK(!lower.IsHeld(0));
    set([](v1::SetPolicyRequest& request) { request.set_max_concurrent(1); });
    CHECK(low.IsHeld(0) != lower.IsHeld(0));
    // Back to the vendor's default, which for AMD is no limit: what the file does not set.
    grpc::ClientContext context;
    v1::ReloadResponse response;
    REQUIRE(daemon.Admin().Reload(&context, {}, &response).ok());
    CHECK(!low.IsHeld(0));
    CHECK(!lower.IsHeld(0));
  }
  SECTION("window") {
    set([](v1::SetPolicyRequest& request) { request.set_window_us(8'000); });
    CHECK(low.WindowUs(0) == 4'000);
  }
  SECTION("guard") {
    high.Report(0, true);
    REQUIRE(Eventually([&] { return low.IsHeld(0); }));
    set([](v1::SetPolicyRequest& request) { request.set_guard_ms_per_s(500); });
    REQUIRE(Eventually([&] { return !low.IsHeld(0); }));
  }
  SECTION("linger") {
    set([](v1::SetPolicyRequest& request) { request.set_linger_us(policy::kLingerLimits.max); });
    high.Report(0, true);
    REQUIRE(Eventually([&] { return low.IsHeld(0); }));
    high.Report(0, false);
    REQUIRE(Eventually(
        [&] { return Find(daemon, high.Welcome().client_id())->devices(0).state() == v1::CLIENT_STATE_IDLE; }));
    set([](v1::SetPolicyRequest& request) { request.set_linger_us(0); });
    CHECK(!low.IsHeld(0));
  }
  SECTION("the policy itself") {
    for (const std::string_view name : policy::kNames) {
      INFO(name);
      CHECK(set([&](v1::SetPolicyRequest& request) { request.set_name(std::string(name)); }).name() == name);
      CHECK(Find(daemon, low.Welcome().client_id())->priority_hint() == 3);
    }
    set([](v1::SetPolicyRequest& request) { request.set_name("priority"); });
    high.Report(0, true);
    REQUIRE(Eventually([&] { return low.IsHeld(0) && lower.IsHeld(0); }));
  }
}

TEST_CASE("a uid over its quota is refused, and administrators still get in") {
  DaemonProcess daemon("[quota]\nconnections_per_uid = 2\nroot_times = 1\n");
  FakeShim first(daemon.Dir(), 0);
  FakeShim second(daemon.Dir(), 0);
  const UniqueFd socket = ConnectTo(daemon.Dir() + "/client.sock");
  const auto welcomed = SayHello(socket.Get(), MakeHello(), kAnswerLimitMs);
  REQUIRE(welcomed);
  CHECK(welcomed->welcome.status == PreambleStatus::kQuota);
  CHECK(List(daemon).clients_size() == 2);
  CHECK(Stats(daemon).refused_total() >= 1);
  second.Finish();
}
