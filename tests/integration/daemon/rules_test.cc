// Clients' hints combined with rules and ceilings of the configuration. The real daemon, over its real sockets.
#include <unistd.h>

#include <string>

#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"

using namespace xschedd;
using namespace xschedd::test;

TEST_CASE("rules and ceilings limit clients' hints") {
  const std::string uid = std::to_string(::getuid());
  DaemonProcess daemon("[[ceiling]]\nuid = " + uid + "\npriority = 10\n[[rule]]\ngroup = \"batch\"\npriority = -30\n");
  FakeShim limited(daemon.Dir(), 50);
  CHECK(limited.Welcome().effective_priority() == 10);
  CHECK(limited.NextNotice() == "priority hint 50 limited to 10 by the ceiling of uid " + uid);
  FakeShim ruled(daemon.Dir(), FakeShim::Options{5, "batch", true, {}});
  CHECK(ruled.Welcome().effective_priority() == -30);
  const auto source = [&](const FakeShim& shim) { return Find(daemon, shim.Welcome().client_id())->priority_source(); };
  CHECK(source(ruled) == v1::PRIORITY_SOURCE_RULE);
  v1::SetRequest request;
  request.mutable_selector()->set_group("batch");
  request.set_priority(90);
  v1::ChangeResponse response;
  grpc::ClientContext context;
  REQUIRE(daemon.Admin().Set(&context, request, &response).ok());
  CHECK(response.changes(0).priority_after() == 10);
  CHECK(source(ruled) == v1::PRIORITY_SOURCE_ADMIN);
  CHECK(response.changes(0).note() == "limited by the ceiling of uid " + uid);
}

TEST_CASE("hints of weight and deadline are applied, and wrong ones are reported") {
  DaemonProcess daemon;
  FakeShim shim(daemon.Dir(), 0);
  const auto weight = [&] { return Find(daemon, shim.Welcome().client_id())->weight(); };
  v1::ClientMessage message;
  v1::Hint& hint = *message.mutable_hint();
  hint.set_weight(300);
  shim.Send(message);
  REQUIRE(Eventually([&] { return weight() == 300; }));
  // A message is applied whole or not at all.
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
  // In force when the call returns: one group, and no client outside it.
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
