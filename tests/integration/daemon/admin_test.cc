// Administrators' requests to the real daemon, over its real sockets.
#include <grpcpp/create_channel.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"

using namespace xschedd;
using namespace xschedd::test;

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
    // It is in force when the call returns.
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
  CHECK(set().error_message() ==
        "nothing to set; give a priority, a weight, a latency, a memory limit or what to reset");
  request.set_latency("low");
  CHECK(set().error_message() == "\"low\" is no latency; give \"strict\" or \"auto\"");
  request.clear_latency();
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
  CHECK(set().error_message() == "no client matches pid 1; xschedctl ps lists the connected clients");

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

TEST_CASE("events report what happened, in order") {
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

TEST_CASE("contradicting requests are refused whole") {
  const std::string uid = std::to_string(::getuid());
  DaemonProcess daemon("[[ceiling]]\nuid = " + uid + "\nweight = 50\n");
  FakeShim shim(daemon.Dir(), 7);
  v1::ChangeResponse response;
  const auto set = [&](auto change) {
    v1::SetRequest request;
    request.mutable_selector()->set_all(true);
    change(request);
    grpc::ClientContext context;
    return daemon.Admin().Set(&context, request, &response);
  };
  CHECK(set([](v1::SetRequest& r) { r.set_priority(1), r.set_reset_priority(true); }).error_message() ==
        "the request both sets and resets a value; give one or the other");
  CHECK(set([](v1::SetRequest& r) { r.set_weight(1), r.set_reset_weight(true); }).error_message() ==
        "the request both sets and resets a value; give one or the other");
  CHECK(Find(daemon, shim.Welcome().client_id())->priority_effective() == 7);
  REQUIRE(set([](v1::SetRequest& r) { r.set_weight(80); }).ok());
  CHECK(response.changes(0).weight_after() == 50);
  CHECK(response.changes(0).note() == "weight limited by the ceiling of uid " + uid);
}

TEST_CASE("hold and release report what they change, and what needed no change") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  shim.Attach(0, kGpu);
  REQUIRE(Eventually([&] { return List(daemon).devices_size() == 1; }));
  v1::ChangeResponse response;
  const auto change = [&](bool hold, bool dry_run, bool all) {
    v1::HoldRequest holding;
    v1::ReleaseRequest releasing;
    if (all) {
      holding.mutable_selector()->set_all(true);
      releasing.mutable_selector()->set_all(true);
    } else {
      holding.mutable_selector()->add_pid(1);
      releasing.mutable_selector()->add_pid(1);
    }
    holding.set_dry_run(dry_run);
    releasing.set_dry_run(dry_run);
    grpc::ClientContext context;
    return hold ? daemon.Admin().Hold(&context, holding, &response)
                : daemon.Admin().Release(&context, releasing, &response);
  };
  CHECK(change(true, false, false).error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(change(false, false, false).error_code() == grpc::StatusCode::NOT_FOUND);
  REQUIRE(change(false, false, true).ok());
  CHECK(response.changes(0).note() == "was not on hold");
  REQUIRE(change(true, true, true).ok());
  CHECK(response.changes(0).note().empty());
  CHECK(!shim.IsHeld(0));
  REQUIRE(change(true, false, true).ok());
  CHECK(shim.IsHeld(0));
  REQUIRE(change(true, false, true).ok());
  CHECK(response.changes(0).note() == "was on hold already");
  REQUIRE(change(false, true, true).ok());
  CHECK(shim.IsHeld(0));
  REQUIRE(change(false, false, true).ok());
  CHECK(!shim.IsHeld(0));
}

TEST_CASE("a client can be explained after it has left, and an unknown pid cannot") {
  DaemonProcess daemon;
  v1::ExplainRequest request;
  v1::ExplainResponse response;
  const auto explain = [&](std::uint64_t pid) {
    request.set_pid(pid);
    grpc::ClientContext context;
    return daemon.Admin().Explain(&context, request, &response);
  };
  CHECK(explain(OwnPid()).error_code() == grpc::StatusCode::NOT_FOUND);
  {
    FakeShim shim(daemon.Dir(), 3);
    shim.Attach(0, kGpu);
    REQUIRE(Eventually([&] { return List(daemon).devices_size() == 1; }));
  }
  REQUIRE(Eventually([&] { return List(daemon).clients_size() == 0; }));
  REQUIRE(explain(OwnPid()).ok());
  CHECK(response.is_gone());
  CHECK(response.priority() == 3);
  CHECK(explain(1).error_message().find("no client has pid 1") == 0);
}

TEST_CASE("a reload that fails reports the error, and the old configuration stays") {
  DaemonProcess daemon("[policy]\nlinger_us = 77\n");
  daemon.WriteConfig("[policy]\nlingerus = 1\n");
  grpc::ClientContext context;
  v1::ReloadResponse response;
  const grpc::Status status = daemon.Admin().Reload(&context, {}, &response);
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(status.error_message().find("the old configuration stays") != std::string::npos);
  grpc::ClientContext again;
  v1::Policy policy;
  REQUIRE(daemon.Admin().GetPolicy(&again, {}, &policy).ok());
  CHECK(policy.linger_us() == 77);
}

TEST_CASE("a dry run of reload and drain changes nothing, and reports what would change") {
  DaemonProcess daemon("[policy]\nlinger_us = 77\n");
  FakeShim shim(daemon.Dir(), 0);
  const auto reload = [&](v1::ReloadResponse& response) {
    v1::ReloadRequest request;
    request.set_dry_run(true);
    grpc::ClientContext context;
    return daemon.Admin().Reload(&context, request, &response);
  };
  v1::ReloadResponse wrong;
  daemon.WriteConfig("[policy]\nlingerus = 1\n");
  const grpc::Status refused = reload(wrong);
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(refused.error_message().find("a reload would keep the old configuration") != std::string::npos);
  daemon.WriteConfig("[policy]\nlinger_us = 78\n");
  v1::ReloadResponse response;
  REQUIRE(reload(response).ok());
  REQUIRE(response.changes_size() == 1);
  CHECK(response.changes(0).before() == "77");
  CHECK(response.changes(0).after() == "78");
  grpc::ClientContext contexts[2];
  v1::Policy policy;
  REQUIRE(daemon.Admin().GetPolicy(&contexts[0], {}, &policy).ok());
  CHECK(policy.linger_us() == 77);
  v1::DrainRequest drain;
  drain.set_dry_run(true);
  v1::DrainResponse drained;
  REQUIRE(daemon.Admin().Drain(&contexts[1], drain, &drained).ok());
  CHECK(drained.clients() == 1);
  CHECK(FakeShim(daemon.Dir(), 0).HasSession());
}

TEST_CASE("an administrator's weight overrides a user's for its own clients, and the user is told") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  const auto user = v1::Admin::NewStub(
      grpc::CreateChannel("unix:" + daemon.Dir() + "/client.sock", grpc::InsecureChannelCredentials()));
  const auto set = [](v1::Admin::StubInterface& stub, std::uint32_t weight) {
    v1::SetRequest request;
    request.mutable_selector()->set_all(true);
    request.set_weight(weight);
    grpc::ClientContext context;
    v1::ChangeResponse response;
    REQUIRE(stub.Set(&context, request, &response).ok());
    REQUIRE(response.changes_size() == 1);
    return response.changes(0);
  };
  CHECK(set(*user, 300).weight_after() == 300);
  CHECK(Find(daemon, shim.Welcome().client_id())->weight() == 300);
  CHECK(set(daemon.Admin(), 200).weight_after() == 200);
  const v1::ChangeResponse::Change kept = set(*user, 400);
  CHECK(kept.weight_after() == 200);
  CHECK(kept.note() == "kept; an administrator's weight overrides it");
}

TEST_CASE("a watcher that does not read loses events, learns how many, and delays no other") {
  DaemonProcess daemon;
  std::vector<std::unique_ptr<FakeShim>> shims;
  for (int i = 0; i < 20; ++i)
    shims.push_back(std::make_unique<FakeShim>(daemon.Dir(), 0));
  // A window that grows with the traffic could take all of it.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::Admin::NewStub(
      grpc::CreateCustomChannel("unix:" + daemon.Dir() + "/admin.sock", grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  v1::WatchEventsRequest request;
  const auto reader = stub->WatchEvents(&context, request);
  v1::Event event;
  REQUIRE(reader->Read(&event));
  CHECK(event.kind() == v1::EVENT_KIND_LIVE);
  // An event for each client and change: far more than the 8,192 that the daemon keeps for it and than the sockets
  // hold.
  for (int change = 0; change < 2'000; ++change) {
    v1::SetRequest set;
    set.mutable_selector()->set_all(true);
    set.set_priority(change % 2);
    grpc::ClientContext call;
    v1::ChangeResponse response;
    REQUIRE(daemon.Admin().Set(&call, set, &response).ok());
  }
  std::uint64_t lost = 0;
  while (lost == 0 && reader->Read(&event)) {
    if (event.kind() == v1::EVENT_KIND_LOST) lost = event.count();
  }
  CHECK(lost > 0);
  context.TryCancel();
  while (reader->Read(&event)) {
  }
  CHECK(reader->Finish().error_code() == grpc::StatusCode::CANCELLED);
  CHECK(List(daemon).clients_size() == 20);
}

TEST_CASE("calls for administrators are refused on the clients' socket, and have no effect") {
  DaemonProcess daemon;
  const auto stub = v1::Admin::NewStub(
      grpc::CreateChannel("unix:" + daemon.Dir() + "/client.sock", grpc::InsecureChannelCredentials()));
  const auto refused = [](const grpc::Status& status) {
    CHECK(status.error_code() == grpc::StatusCode::PERMISSION_DENIED);
    CHECK(!status.error_message().empty());
  };
  v1::SetPolicyRequest policy;
  policy.set_name("fifo");
  v1::Policy answer;
  grpc::ClientContext contexts[4];
  refused(stub->SetPolicy(&contexts[0], policy, &answer));
  v1::ReloadResponse reloaded;
  refused(stub->Reload(&contexts[1], {}, &reloaded));
  v1::DrainResponse drained;
  refused(stub->Drain(&contexts[2], {}, &drained));
  v1::Stats stats;
  refused(stub->GetStats(&contexts[3], {}, &stats));
  // Repeated calls are refused and counted each time; the log has one line.
  const auto lines = [&] {
    const std::string log = daemon.Log();
    const std::string line = "called Drain on client.sock";
    const std::size_t first = log.find(line);
    return std::pair(first != std::string::npos, log.find(line, first + 1) != std::string::npos);
  };
  const std::uint64_t before = Stats(daemon).refused_total();
  grpc::ClientContext once_more;
  refused(stub->Drain(&once_more, {}, &drained));
  CHECK(Stats(daemon).refused_total() == before + 1);
  CHECK(Eventually([&] { return lines().first; }));
  CHECK_FALSE(lines().second);
  grpc::ClientContext context;
  REQUIRE(daemon.Admin().GetPolicy(&context, {}, &answer).ok());
  CHECK(answer.name() == "priority");
  CHECK(FakeShim(daemon.Dir(), 0).HasSession());
}
