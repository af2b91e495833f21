// A policy that is changed while clients are there. The real daemon, over its real sockets.
#include <string>
#include <string_view>

#include "daemon/policy/types.h"
#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"

using namespace xschedd;
using namespace xschedd::test;

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
