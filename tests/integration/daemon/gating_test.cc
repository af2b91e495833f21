// Which clients the real daemon holds, and for which, over its real sockets.
#include <algorithm>
#include <string>

#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"

using namespace xschedd;
using namespace xschedd::test;

TEST_CASE("the less important of two clients is held while the other is busy") {
  DaemonProcess daemon;
  FakeShim high(daemon.Dir(), 50);
  FakeShim low(daemon.Dir(), -10);
  high.Attach(0, kGpu);
  low.Attach(5, kGpu);
  REQUIRE(Eventually([&] { return high.IsTracked(0) && low.IsTracked(5); }));
  CHECK(!low.IsHeld(5));
  CHECK(low.WindowUs(5) == 4'000);  // until the other client first has work
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
  CHECK(low.WindowUs(5) == 500);
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
    // On a busy machine linger may have lasted longer than the work, so the order of the causes is not checked.
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

TEST_CASE("a held client stays shut whatever its priority, until it is released") {
  DaemonProcess daemon("[daemon]\nlease_ms = 1000\n");  // also on a machine that gives it no processor for a while
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
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t until_ns = shim.LeaseUntilNs();
    REQUIRE(Eventually([&] {
      CHECK(!shim.IsLeaseOver());
      return shim.LeaseUntilNs() > until_ns;
    }));
  }
  v1::ReleaseRequest release;
  release.mutable_selector()->set_exe("daemon_integration");
  grpc::ClientContext context;
  REQUIRE(daemon.Admin().Release(&context, release, &response).ok());
  CHECK(!shim.IsHeld(0));
  CHECK(!shim.IsTracked(0));
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
