// Changes of the policy under live clients. The real daemon, over its real sockets.
#include <google/protobuf/util/message_differencer.h>

#include <string>
#include <string_view>

#include "daemon/policy/types.h"
#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"
#include "tests/integration/daemon/high_and_low.h"

using namespace xschedd;
using namespace xschedd::test;

TEST_CASE("a policy change keeps priorities and acts at once") {
  DaemonProcess daemon;
  HighAndLow two(daemon.Dir());
  auto& [high, low] = two;
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

TEST_CASE("every setting of the policy acts before the call returns, and keeps the other settings") {
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
    // Back to the vendor's default, which is no limit for AMD, because the file does not set it.
    grpc::ClientContext context;
    v1::ReloadResponse response;
    REQUIRE(daemon.Admin().Reload(&context, {}, &response).ok());
    CHECK(!low.IsHeld(0));
    CHECK(!lower.IsHeld(0));
  }
  SECTION("window") {
    high.Report(0, true);
    REQUIRE(Eventually([&] { return low.IsHeld(0); }));
    high.Report(0, false);
    REQUIRE(Eventually([&] { return !low.IsHeld(0); }));
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
    set([](v1::SetPolicyRequest& request) { request.set_linger_us(policy::RowOf(&policy::Settings::linger_us).max); });
    high.Report(0, true);
    REQUIRE(Eventually([&] { return low.IsHeld(0); }));
    high.Report(0, false);
    REQUIRE(Eventually(
        [&] { return Find(daemon, high.Welcome().client_id())->devices(0).state() == v1::CLIENT_STATE_IDLE; }));
    set([](v1::SetPolicyRequest& request) { request.set_linger_us(0); });
    CHECK(!low.IsHeld(0));
  }
  SECTION("the policy itself") {
    const v1::Policy now = set([](v1::SetPolicyRequest&) {});
    CHECK(now.available_size() >= 6);
    for (const std::string& name : now.available()) {
      INFO(name);
      CHECK(set([&](v1::SetPolicyRequest& request) { request.set_name(name); }).name() == name);
      CHECK(Find(daemon, low.Welcome().client_id())->priority_hint() == 3);
    }
    set([](v1::SetPolicyRequest& request) { request.set_name("priority"); });
    high.Report(0, true);
    REQUIRE(Eventually([&] { return low.IsHeld(0) && lower.IsHeld(0); }));
  }
}

TEST_CASE("a number out of range changes nothing, whichever it is") {
  DaemonProcess daemon;
  const auto get = [&] {
    grpc::ClientContext context;
    v1::Policy policy;
    REQUIRE(daemon.Admin().GetPolicy(&context, {}, &policy).ok());
    return policy;
  };
  const v1::Policy before = get();
  constexpr std::uint32_t kTooMuch = 0xffffffff;
  const struct {
    const char* name;
    void (*set)(v1::SetPolicyRequest&);
  } cases[] = {{"linger_us", [](v1::SetPolicyRequest& r) { r.set_linger_us(kTooMuch); }},
               {"guard_ms_per_s", [](v1::SetPolicyRequest& r) { r.set_guard_ms_per_s(kTooMuch); }},
               {"window_us", [](v1::SetPolicyRequest& r) { r.set_window_us(kTooMuch); }},
               {"top_window_us", [](v1::SetPolicyRequest& r) { r.set_top_window_us(kTooMuch); }},
               {"max_concurrent", [](v1::SetPolicyRequest& r) { r.set_max_concurrent(kTooMuch); }},
               {"tolerance_percent", [](v1::SetPolicyRequest& r) { r.set_tolerance_percent(kTooMuch); }},
               {"turn_ms", [](v1::SetPolicyRequest& r) { r.set_turn_ms(kTooMuch); }},
               {"share_slack_us", [](v1::SetPolicyRequest& r) { r.set_share_slack_us(0); }},
               {"laxity_margin_us", [](v1::SetPolicyRequest& r) { r.set_laxity_margin_us(kTooMuch); }},
               {"fair_quantum_ms", [](v1::SetPolicyRequest& r) { r.set_fair_quantum_ms(0); }},
               {"time_slices", [](v1::SetPolicyRequest& r) { r.set_time_slices("on"); }},
               {"max_concurrent is given twice", [](v1::SetPolicyRequest& r) {
                  r.set_max_concurrent(3);
                  r.set_max_concurrent_by_vendor(true);
                }}};
  for (const auto& [name, set] : cases) {
    v1::SetPolicyRequest request;
    request.set_name("fifo");
    set(request);
    grpc::ClientContext context;
    v1::Policy answer;
    const grpc::Status status = daemon.Admin().SetPolicy(&context, request, &answer);
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK(status.error_message().find(name) == 0);
  }
  const auto by_key = [&](const std::string& key, policy::Value value) {
    v1::SetPolicyRequest request;
    request.set_name("fifo");
    (*request.mutable_settings())[key] = value;
    grpc::ClientContext context;
    v1::Policy answer;
    return daemon.Admin().SetPolicy(&context, request, &answer);
  };
  for (const policy::SettingRow& row : policy::kSettings) {
    const grpc::Status status = by_key(std::string(row.key), policy::Value{row.max} + 1);
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK(status.error_message().find(row.key) == 0);
  }
  CHECK(by_key("no_such_setting", 1).error_message().find("there is no setting \"no_such_setting\"") == 0);
  v1::SetPolicyRequest request;
  request.set_max_concurrent_by_vendor(true);
  (*request.mutable_settings())["linger_us"] = 5;
  request.set_dry_run(true);
  grpc::ClientContext context;
  v1::Policy answer;
  REQUIRE(daemon.Admin().SetPolicy(&context, request, &answer).ok());
  CHECK(answer.linger_us() == 5);
  CHECK(google::protobuf::util::MessageDifferencer::Equals(get(), before));
}
