// The plugin with stand-ins for the engine and the daemon.
#include "tools/nri/plugin.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "tests/catch.h"
#include "tools/nri/session.h"
#include "ttrpc.pb.h"

using namespace xschedd::nri;
using xschedd::Result;
using xschedd::UniqueFd;
namespace ttrpc = xschedd::ttrpc;

namespace {

constexpr char kFirst[] = "11111111111111111111111111111111ffffffffffffffffffffffffffffffff";
constexpr char kSecond[] = "22222222222222222222222222222222ffffffffffffffffffffffffffffffff";
constexpr char kFirstClaim[] = "nri-11111111111111111111111111111111";
constexpr char kSecondClaim[] = "nri-22222222222222222222222222222222";

class FakeClaims : public Claims {
 public:
  Result<void> Put(const xschedd::v1::Claim& claim) override {
    if (is_down) return xschedd::Fail("no daemon");
    if (claim.name() == refused) return xschedd::Fail("refused");
    there[claim.name()] = claim;
    return {};
  }
  Result<void> Delete(const std::string& name) override {
    if (is_down) return xschedd::Fail("no daemon");
    there.erase(name);
    return {};
  }
  Result<std::vector<std::string>> Names() override {
    if (is_down) return xschedd::Fail("no daemon");
    std::vector<std::string> names;
    for (const auto& [name, claim] : there)
      names.push_back(name);
    return names;
  }
  std::map<std::string, xschedd::v1::Claim> there;
  bool is_down = false;
  std::string refused;
};

struct Test {
  FakeClaims claims;
  std::vector<std::string> said;
  // Any existing file can stand for the shim.
  Plugin plugin{{"/run/xschedd", "/nowhere/nri.toml", "/proc/self/exe"}, claims, [this](const auto& line) {
                  said.push_back(line);
                }};
  std::chrono::steady_clock::time_point now{};

  static api::ContainerRequest Request(const std::string& id, const std::string& priority = "-5") {
    api::ContainerRequest request;
    request.mutable_pod()->set_id("pod");
    request.mutable_pod()->set_name("web-1");
    request.mutable_pod()->set_namespace_("ml");
    if (!priority.empty()) (*request.mutable_pod()->mutable_annotations())["xschedd.io/priority"] = priority;
    request.mutable_container()->set_id(id);
    request.mutable_container()->set_name("main");
    request.mutable_container()->set_pod_sandbox_id("pod");
    return request;
  }
  api::ContainerAdjustment Create(const api::ContainerRequest& request) {
    const Answer answer = plugin.Handle("CreateContainer", request.SerializeAsString());
    CHECK(answer.code == Answer::kOk);
    api::CreateContainerResponse response;
    REQUIRE(response.ParseFromString(answer.payload));
    return response.adjust();
  }
  void Call(const std::string& method, const std::string& payload) {
    CHECK(plugin.Handle(method, payload).code == Answer::kOk);
  }
  // Does all work that is due now, without waiting for retries.
  void Settle() {
    while (plugin.Work(now).count() == 0) {
    }
  }
};

}  // namespace

TEST_CASE("a created container gets its claim, two mounts and a variable") {
  Test test;
  auto request = Test::Request(kFirst);
  request.mutable_container()->add_env("LD_PRELOAD=/lib/other.so");
  request.mutable_container()->add_mounts()->set_destination("/run/xschedd");
  const auto adjustment = test.Create(request);
  REQUIRE(test.claims.there.count(kFirstClaim) == 1);
  CHECK(test.claims.there[kFirstClaim].priority() == -5);
  REQUIRE(adjustment.mounts_size() == 3);
  CHECK(adjustment.mounts(0).destination() == "-/run/xschedd");
  CHECK(adjustment.mounts(1).source() == std::string("/run/xschedd/claims/") + kFirstClaim);
  CHECK(adjustment.mounts(1).destination() == "/run/xschedd");
  CHECK(adjustment.mounts(1).options_size() == 4);
  CHECK(adjustment.mounts(1).options(0) == "ro");
  CHECK(adjustment.mounts(2).source() == "/proc/self");
  CHECK(adjustment.mounts(2).destination() == "/proc/self");
  REQUIRE(adjustment.env_size() == 1);
  CHECK(adjustment.env(0).key() == "LD_PRELOAD");
  CHECK(adjustment.env(0).value() == "/proc/self/exe:/lib/other.so");
  CHECK(test.said.empty());
}

TEST_CASE("a container that is not annotated is not changed, and one starts also without a daemon") {
  Test test;
  CHECK(test.Create(Test::Request(kFirst, "")).ByteSizeLong() == 0);
  CHECK(test.said.empty());
  test.claims.is_down = true;
  CHECK(test.Create(Test::Request(kFirst)).ByteSizeLong() == 0);
  REQUIRE(test.said.size() == 1);
  CHECK(test.said[0] == "pod ml/web-1, container main starts without xschedd: no daemon");
}

TEST_CASE("what an annotation asks for in vain is told to the container, too") {
  Test test;
  auto request = Test::Request(kFirst, "ur\ngent");
  (*request.mutable_pod()->mutable_annotations())["xschedd.io/weight"] = "0";
  const auto adjustment = test.Create(request);
  REQUIRE(test.said.size() == 2);
  REQUIRE(adjustment.env_size() == 2);
  CHECK(adjustment.env(1).key() == "XSCHEDD_NOTICE");
  CHECK(adjustment.env(1).value() == test.said[0] + "; " + test.said[1]);
  CHECK(adjustment.env(1).value().find('\n') == std::string::npos);
}

TEST_CASE("a claim ends with its container, however the engine reports the end") {
  for (const char* const way : {"StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox"}) {
    Test test;
    test.Create(Test::Request(kFirst));
    test.Call(way, Test::Request(kFirst).SerializeAsString());
    test.Settle();
    INFO(way);
    CHECK(test.claims.there.empty());
  }
  Test test;
  test.Create(Test::Request(kFirst));
  api::StateChangeEvent event;
  event.set_event(api::REMOVE_CONTAINER);
  event.mutable_container()->set_id(kFirst);
  test.Call("StateChange", event.SerializeAsString());
  test.Settle();
  CHECK(test.claims.there.empty());
}

TEST_CASE("a claim that could not be deleted is tried again a second later") {
  Test test;
  test.Create(Test::Request(kFirst));
  test.claims.is_down = true;
  test.Call("StopContainer", Test::Request(kFirst).SerializeAsString());
  test.Settle();
  test.claims.is_down = false;
  test.Settle();
  CHECK(test.claims.there.size() == 1);
  test.now += std::chrono::seconds(1);
  test.Settle();
  CHECK(test.claims.there.empty());
}

TEST_CASE("a claim that the daemon refuses keeps nothing else waiting, and is reported once") {
  Test test;
  const std::string third(64, '3');
  for (const std::string& id : {std::string(kFirst), std::string(kSecond), third})
    test.Create(Test::Request(id));
  test.claims.there.erase(kFirstClaim);
  test.claims.there.erase(kSecondClaim);
  test.claims.refused = kFirstClaim;
  test.Call("StopContainer", Test::Request(third).SerializeAsString());
  for (int second = 10; second < 20; ++second) {
    test.now += std::chrono::seconds(1);
    test.Settle();
  }
  CHECK(test.claims.there.size() == 1);
  CHECK(test.claims.there.count(kSecondClaim) == 1);
  CHECK(test.said == std::vector<std::string>{"pod ml/web-1, container main: its claim could not be put again, and is "
                                              "tried every second: refused"});
  test.claims.refused.clear();
  test.now += std::chrono::seconds(10);
  test.Settle();
  CHECK(test.claims.there.count(kFirstClaim) == 1);
}

TEST_CASE("after a restart, claims of containers that are gone end, and others' claims stay") {
  Test test;
  for (const std::string& name : {std::string(kFirstClaim), std::string(kSecondClaim), std::string("slurm-17")})
    test.claims.there[name].set_name(name);
  api::SynchronizeRequest request;
  request.set_more(true);
  request.add_containers()->set_id(kFirst);
  api::SynchronizeResponse response;
  REQUIRE(response.ParseFromString(test.plugin.Handle("Synchronize", request.SerializeAsString()).payload));
  CHECK(response.more());
  test.Settle();
  CHECK(test.claims.there.size() == 3);
  request.clear_containers();
  request.set_more(false);
  api::Container& stopped = *request.add_containers();
  stopped.set_id(kSecond);
  stopped.set_state(api::CONTAINER_STOPPED);
  test.Call("Synchronize", request.SerializeAsString());
  test.Settle();
  CHECK(test.claims.there.count(kFirstClaim) == 1);
  CHECK(test.claims.there.count(kSecondClaim) == 0);
  CHECK(test.claims.there.count("slurm-17") == 1);
  // It knows the container of the first claim.
  test.Call("StopContainer", Test::Request(kFirst).SerializeAsString());
  test.Settle();
  CHECK(test.claims.there.size() == 1);
}

TEST_CASE("a daemon that has lost its claims gets them again for containers that have the mounts") {
  Test test;
  test.Create(Test::Request(kFirst));
  // One container from before a restart of the plugin, and one that was created while it was down.
  const auto later = [&] {
    test.now += std::chrono::seconds(10);
    test.Settle();
  };
  later();
  test.claims.there.clear();
  later();
  REQUIRE(test.claims.there.count(kFirstClaim) == 1);
  CHECK(test.claims.there[kFirstClaim].priority() == -5);
  test.claims.there.clear();
  api::SynchronizeRequest request;
  request.set_more(true);
  *request.add_pods() = Test::Request(kFirst).pod();
  test.Call("Synchronize", request.SerializeAsString());
  request.clear_pods();
  request.set_more(false);
  for (const auto* const id : {kFirst, kSecond})
    *request.add_containers() = Test::Request(id).container();
  request.mutable_containers(0)->add_mounts()->set_source(std::string("/run/xschedd/claims/") + kFirstClaim);
  test.Call("Synchronize", request.SerializeAsString());
  later();
  CHECK(test.claims.there.size() == 1);
  CHECK(test.claims.there[kFirstClaim].priority() == -5);
  // Its claim ends with it.
  test.Call("StopContainer", Test::Request(kFirst).SerializeAsString());
  later();
  CHECK(test.claims.there.empty());
}

TEST_CASE("a wrong configuration is reported once, and the last valid one stays in force") {
  char name[] = "/tmp/xschedd-nri-XXXXXX";
  const UniqueFd file(::mkstemp(name));
  const auto write = [&](const std::string& text) {
    REQUIRE(::ftruncate(file.Get(), 0) == 0);
    REQUIRE(::pwrite(file.Get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  };
  FakeClaims claims;
  std::vector<std::string> said;
  Plugin plugin({"/run/xschedd", name, "/proc/self/exe"}, claims, [&](const auto& line) { said.push_back(line); });
  const auto priority = [&](const char* id) {
    plugin.Handle("CreateContainer", Test::Request(id, "30").SerializeAsString());
    return claims.there.at(ClaimName(id)).priority();
  };
  write("[namespace.ml]\nceiling = 40\n");
  CHECK(priority(kFirst) == 30);
  write("[namespace.ml]\nceiling = 400\n");
  CHECK(priority(kFirst) == 30);
  CHECK(priority(kSecond) == 30);
  CHECK(said.size() == 1);
  write("[namespace.ml]\nceiling = 20\n");
  CHECK(priority(kFirst) == 20);
  ::unlink(name);
}

TEST_CASE("over a socket it registers, answers in the engine's stream, and refuses unknown calls") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  Test test;
  Link link{UniqueFd(ends[0])};
  bool is_ready = false;
  xschedd::Error end;
  std::thread plugin([&] { end = Serve(link, "10", test.plugin, [&] { is_ready = true; }); });
  {
    Link engine{UniqueFd(ends[1])};
    constexpr std::chrono::seconds kLimit{60};
    const auto next = [&] {
      auto incoming = engine.Receive(kLimit);
      if (!incoming || !*incoming) throw std::runtime_error("the plugin sends nothing");
      return **incoming;
    };
    const auto registration = next();
    CHECK(registration.connection == kRuntimeConnection);
    ttrpc::Request request;
    REQUIRE(request.ParseFromString(registration.frame.data));
    CHECK(request.service() == "nri.pkg.api.v1alpha1.Runtime");
    CHECK(request.method() == "RegisterPlugin");
    api::RegisterPluginRequest registered;
    REQUIRE(registered.ParseFromString(request.payload()));
    CHECK(registered.plugin_name() == "xschedd");
    CHECK(registered.plugin_idx() == "10");
    CHECK(engine.Send(kRuntimeConnection, {1, TtrpcFrame::kResponse, 0, ""}));
    const auto call = [&](std::uint32_t stream, const std::string& method, const std::string& payload) {
      ttrpc::Request made;
      made.set_service("nri.pkg.api.v1alpha1.Plugin");
      made.set_method(method);
      made.set_payload(payload);
      CHECK(engine.Send(kPluginConnection, {stream, TtrpcFrame::kRequest, 0, made.SerializeAsString()}));
      const auto answered = next();
      CHECK(answered.connection == kPluginConnection);
      CHECK(answered.frame.stream == stream);
      ttrpc::Response response;
      CHECK(response.ParseFromString(answered.frame.data));
      return response;
    };
    api::ConfigureResponse configured;
    REQUIRE(configured.ParseFromString(call(1, "Configure", "").payload()));
    CHECK(configured.events() == 0x60e);
    CHECK(call(3, "CreateContainer", Test::Request(kFirst).SerializeAsString()).status().code() == 0);
    CHECK(call(5, "CreateContainer", "\xff").status().code() == Answer::kInvalidArgument);
    CHECK(call(7, "ValidateContainerAdjustment", "").status().code() == Answer::kUnimplemented);
    CHECK(call(9, "StopContainer", Test::Request(kFirst).SerializeAsString()).status().code() == 0);
  }
  plugin.join();
  CHECK(is_ready);
  CHECK(end.what == "the container engine closed the connection");
}

TEST_CASE("an engine that refuses it or sends invalid messages ends the session with a reason") {
  const auto serve = [](Connection connection, const TtrpcFrame& frame, const std::string& more) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    Test test;
    Link link{UniqueFd(ends[0])};
    const UniqueFd engine(ends[1]);
    const std::string bytes = more.empty() ? EncodeMux(connection, EncodeTtrpc(frame)) : more;
    REQUIRE(::write(engine.Get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    return Serve(link, "10", test.plugin, [] {}).what;
  };
  ttrpc::Response refusal;
  refusal.mutable_status()->set_code(Answer::kInvalidArgument);
  refusal.mutable_status()->set_message("no");
  CHECK(serve(kRuntimeConnection, {1, TtrpcFrame::kResponse, 0, refusal.SerializeAsString()}, "") ==
        "the container engine refuses the plugin: no");
  CHECK(serve(kRuntimeConnection, {1, TtrpcFrame::kResponse, 0, "\xff"}, "") ==
        "the container engine's answer cannot be read");
  CHECK(serve(kRuntimeConnection, {}, "GET / HTTP/1.1\r\n\r\n") ==
        "a multiplexed frame of 790644820 bytes, more than 4194314");
}
