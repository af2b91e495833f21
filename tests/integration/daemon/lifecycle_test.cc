// Starting, reloading, disabling, stopping and killing the real daemon.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"
#include "tests/integration/daemon/high_and_low.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

// /proc's figures of the daemon's own thread, without gRPC's.
struct ThreadStat {
  char state = '?';
  std::uint64_t cpu_ticks = 0;
};

ThreadStat StatOf(pid_t thread) {
  const std::string text = ReadFile("/proc/" + std::to_string(thread) + "/task/" + std::to_string(thread) + "/stat");
  ThreadStat stat;
  const std::size_t name_end = text.rfind(')');  // a name may contain anything
  if (name_end == std::string::npos) return stat;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  fields >> stat.state;
  for (int field = 4; field < 14; ++field)
    fields >> skipped;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  fields >> user >> system;
  stat.cpu_ticks = user + system;
  return stat;
}

}  // namespace

TEST_CASE("a second daemon on the same folder is refused; a dead one's sockets are replaced") {
  DaemonProcess daemon;
  const std::string output = daemon.Dir() + "/second";
  const pid_t second = Spawn({DaemonProcess::Binary(), "--runtime-dir", daemon.Dir()}, output);
  CHECK(Reap(second) == 1);
  CHECK(ReadFile(output).find("another xschedd serves") != std::string::npos);
  CHECK(List(daemon).clients_size() == 0);

  daemon.Signal(SIGKILL);
  REQUIRE(Eventually([&] { return !ConnectTo(daemon.Dir() + "/client.sock").IsValid(); }));
  const std::string third_output = daemon.Dir() + "/third";
  const pid_t third = Spawn({DaemonProcess::Binary(), "--runtime-dir", daemon.Dir()}, third_output);
  CHECK(Eventually([&] { return ReadFile(third_output).find("ready version") != std::string::npos; }));
  ::kill(third, SIGTERM);
  CHECK(Reap(third) == 0);
}

TEST_CASE("a wrong configuration at reload keeps the old one") {
  DaemonProcess daemon("[policy]\nlinger_us = 123\n");
  FakeShim shim(daemon.Dir(), 0);
  daemon.WriteConfig("[policy]\nlinger_us = \"long\"\n");
  daemon.Signal(SIGHUP);
  REQUIRE(Eventually([&] { return daemon.Log().find("config.toml:2:13") != std::string::npos; }));
  const auto linger = [&] {
    grpc::ClientContext context;
    v1::Policy policy;
    REQUIRE(daemon.Admin().GetPolicy(&context, {}, &policy).ok());
    return policy.linger_us();
  };
  CHECK(linger() == 123);
  daemon.WriteConfig("passthrough = [\n  \"hipMemcpyAsnc\"]\n");
  daemon.Signal(SIGHUP);
  REQUIRE(Eventually([&] {
    return daemon.Log().find(
               "config.toml:2:3: passthrough: \"hipMemcpyAsnc\" is no entry point that is gated; did you mean "
               "hipMemcpyAsync?") != std::string::npos ||
           daemon.Log().find("config.toml:2:3: passthrough: \\\"hipMemcpyAsnc\\\"") != std::string::npos;
  }));
  daemon.WriteConfig("passthrough = [\"librccl.so\"]\n[policy]\nlinger_us = 456\n");
  daemon.Signal(SIGHUP);
  REQUIRE(Eventually([&] { return linger() == 456; }));
  const auto configuration = shim.NextConfiguration();
  REQUIRE(configuration);
  REQUIRE(configuration->passthrough_size() == 1);
  CHECK(configuration->passthrough(0) == "librccl.so");
  // A matching rule adds entries, only for the clients that it matches.
  daemon.WriteConfig("passthrough = [\"librccl.so\"]\n[[rule]]\nuid = " + std::to_string(::getuid()) +
                     "\npassthrough = [\"kernel:*nccl*\"]\n");
  daemon.Signal(SIGHUP);
  const auto with_rule = shim.NextConfiguration();
  REQUIRE(with_rule);
  REQUIRE(with_rule->passthrough_size() == 2);
  CHECK(with_rule->passthrough(1) == "kernel:*nccl*");
  daemon.WriteConfig("[[rule]]\nuid = " + std::to_string(::getuid() + 1) + "\npassthrough = [\"kernel:*nccl*\"]\n");
  daemon.Signal(SIGHUP);
  const auto of_others = shim.NextConfiguration();
  REQUIRE(of_others);
  CHECK(of_others->passthrough_size() == 0);
}

TEST_CASE("an observing daemon says so, holds no client, and enforces after a reload") {
  DaemonProcess daemon("[daemon]\nenforce = false\n");
  REQUIRE(Eventually([&] { return daemon.Log().find("observing only") != std::string::npos; }));
  HighAndLow two(daemon.Dir());
  FakeShim &high = two.high, &low = two.low;
  low.Report(0, true);
  high.Report(0, true);
  const auto list = [&] {
    grpc::ClientContext context;
    v1::ListClientsResponse clients;
    REQUIRE(daemon.Admin().ListClients(&context, {}, &clients).ok());
    return clients;
  };
  const auto state = [&](const v1::ListClientsResponse& clients) {
    for (const v1::Client& client : clients.clients())
      if (client.priority_effective() == 0) return client.devices(0).state();
    return v1::CLIENT_STATE_UNSPECIFIED;
  };
  REQUIRE(Eventually([&] { return state(list()) == v1::CLIENT_STATE_OBSERVED; }));
  CHECK(list().observes_only());
  CHECK(!low.IsHeld(0));
  daemon.WriteConfig("");
  daemon.Signal(SIGHUP);
  REQUIRE(Eventually([&] { return low.IsHeld(0); }));
  CHECK(state(list()) == v1::CLIENT_STATE_HELD);
  CHECK(!list().observes_only());
}

TEST_CASE("a daemon with spin = true spins while a client is tracked, and otherwise sleeps") {
  DaemonProcess daemon("[daemon]\nspin = true\n");
  const auto sleeps = [&] { return Eventually([&] { return StatOf(daemon.Pid()).state == 'S'; }); };
  // A sleeping daemon uses some ms of processor time a second for the leases, so it would take minutes to use 0.2 s.
  const auto spins = [&] {
    const std::uint64_t begin = StatOf(daemon.Pid()).cpu_ticks;
    const auto fifth = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)) / 5;
    return Eventually([&] { return StatOf(daemon.Pid()).cpu_ticks - begin >= fifth; });
  };
  CHECK(sleeps());
  {
    HighAndLow two(daemon.Dir());
    FakeShim &high = two.high, &low = two.low;
    CHECK(spins());
    high.Report(0, true);
    CHECK(Eventually([&] { return low.IsHeld(0); }));
    daemon.WriteConfig("[daemon]\nspin = false\n");
    daemon.Signal(SIGHUP);
    CHECK(sleeps());
    daemon.WriteConfig("[daemon]\nspin = true\n");
    daemon.Signal(SIGHUP);
    CHECK(spins());
  }
  CHECK(sleeps());
  CHECK(daemon.Stop() == 0);
}

TEST_CASE("wrong options and wrong files have their own exit codes") {
  const TemporaryFolder folder;
  const std::string output = folder.Path() + "/output";
  const auto run = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> command{DaemonProcess::Binary()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Reap(Spawn(command, output));
  };
  CHECK(run({"--version"}) == 0);
  CHECK(run({"--nonsense"}) == 2);
  CHECK(run({"--policy", "best"}) == 2);
  CHECK(run({"--log-level", "loud"}) == 2);
  CHECK(run({"--config", folder.Path() + "/absent.toml"}) == 3);
  CHECK(run({"--check-config", "--config", folder.Path()}) == 3);
  CHECK(run({"--runtime-dir", folder.Path() + "/a/b"}) == 1);
  CHECK(run({"--runtime-dir", folder.Path() + "/" + std::string(120, 'x')}) == 1);
  CHECK(ReadFile(output).find("there is no policy \"best\"; choose") != std::string::npos);
  CHECK(ReadFile(output).find("longer than 107 bytes; choose a shorter --runtime-dir") != std::string::npos);
}

TEST_CASE("sockets that systemd hands over are used and left in place") {
  const TemporaryFolder folder;
  const std::string output = folder.Path() + "/output";
  const pid_t daemon =
      SpawnWithSockets({DaemonProcess::Binary(), "--runtime-dir", folder.Path()},
                       {{"client", folder.Path() + "/client.sock"}, {"admin", folder.Path() + "/admin.sock"}}, output);
  REQUIRE(Eventually([&] { return ReadFile(output).find("ready version") != std::string::npos; }));
  {
    FakeShim shim(folder.Path(), 5);
    CHECK(shim.Welcome().effective_priority() == 5);
  }
  ::kill(daemon, SIGTERM);
  CHECK(Reap(daemon) == 0);
  struct stat status {};
  CHECK(::stat((folder.Path() + "/client.sock").c_str(), &status) == 0);

  const std::string refused = folder.Path() + "/refused";
  const pid_t wrong = SpawnWithSockets({DaemonProcess::Binary(), "--runtime-dir", folder.Path()},
                                       {{"other", folder.Path() + "/other.sock"}}, refused);
  CHECK(Reap(wrong) == 1);
  CHECK(ReadFile(refused).find("the unexpected socket \"other\"") != std::string::npos);
}

TEST_CASE("disable opens all gates and accepts no new client, enable undoes it") {
  DaemonProcess daemon;
  HighAndLow two(daemon.Dir());
  FakeShim &high = two.high, &low = two.low;
  high.Report(0, true);
  REQUIRE(Eventually([&] { return low.IsHeld(0); }));
  grpc::ClientContext context;
  v1::DisableResponse response;
  REQUIRE(daemon.Admin().Disable(&context, {}, &response).ok());
  CHECK(response.clients() == 2);
  CHECK(!response.was_disabled());
  CHECK(!low.IsHeld(0));
  const UniqueFd socket = ConnectTo(daemon.Dir() + "/client.sock");
  const auto welcomed = SayHello(socket.Get(), MakeHello(), kAnswerLimitMs);
  REQUIRE(welcomed);
  CHECK(welcomed->welcome.status == PreambleStatus::kDraining);

  grpc::ClientContext undo;
  v1::EnableResponse enabled;
  REQUIRE(daemon.Admin().Enable(&undo, {}, &enabled).ok());
  CHECK(!enabled.was_enabled());
  REQUIRE(Eventually([&] { return high.IsTracked(0); }));
  high.Report(0, true);
  CHECK(Eventually([&] { return low.IsHeld(0); }));
  // A client that was refused meanwhile is scheduled when it connects again.
  FakeShim late(daemon.Dir(), -10);
  late.Attach(0, kGpu);
  CHECK(Eventually([&] { return late.IsHeld(0); }));
}

TEST_CASE("SIGTERM opens all gates, removes the sockets and exits 0") {
  DaemonProcess daemon;
  HighAndLow two(daemon.Dir());
  FakeShim &high = two.high, &low = two.low;
  high.Report(0, true);
  REQUIRE(Eventually([&] { return low.IsHeld(0); }));
  CHECK(daemon.Stop() == 0);
  CHECK(!low.IsHeld(0));
  CHECK(!high.IsTracked(0));
  struct stat status {};
  CHECK(::stat((daemon.Dir() + "/client.sock").c_str(), &status) != 0);
  CHECK(::stat((daemon.Dir() + "/admin.sock").c_str(), &status) != 0);
}

TEST_CASE("a killed daemon holds no client for longer than the lease") {
  DaemonProcess daemon;
  HighAndLow two(daemon.Dir());
  FakeShim &high = two.high, &low = two.low;
  high.Report(0, true);
  REQUIRE(Eventually([&] { return low.IsHeld(0); }));
  daemon.Signal(SIGKILL);
  low.WaitAtGate(0);
  CHECK(low.IsHeld(0));  // the gate is still shut, but the lease has ended
}
