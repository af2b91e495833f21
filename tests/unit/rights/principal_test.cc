// Principals: the place of a process, which users may manage which clients, and the texts about principals.
#include "daemon/registry/principal.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "daemon/core.h"
#include "daemon/registry/process.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

const std::string kOne(64, 'a');
const std::string kTwo(64, 'b');
const std::string kThree(64, 'c');
const std::string kHostPids = "pid:[1]";

constexpr std::uint32_t kPodUser = 1000;
constexpr std::uint32_t kPodUsersSub = 100'003;

}  // namespace

TEST_CASE("a place is the container that the kernel reports, and never the host if the kernel reports nothing") {
  const Surroundings on_host{"/system.slice/xschedd.service", false, kHostPids};
  const Surroundings in_pod{"/kubepods.slice/cri-containerd-" + kThree + ".scope", false, kHostPids};
  const Surroundings in_node{"/docker/" + kOne + "/kubepods/" + kThree, false, kHostPids};
  const Surroundings no_hierarchy{std::nullopt, false, kHostPids};
  const Surroundings no_namespaces{"/", true, ""};
  const struct {
    Surroundings process;
    Surroundings daemon;
    std::string place;
  } cases[] = {
      {{"/", false, kHostPids}, on_host, ""},
      {{"/init.scope", false, kHostPids}, on_host, ""},
      {{"/system.slice/ssh.service", false, kHostPids}, on_host, ""},
      {{"/user.slice/user-1000.slice/session-1.scope", false, kHostPids}, on_host, ""},
      {{"/docker/" + kOne, false, kHostPids}, on_host, "container " + kOne},  // --pid=host
      {{"/system.slice/docker-" + kOne + ".scope", true, "pid:[2]"}, on_host, "container " + kOne},
      {{"/kubepods.slice/pod1.slice/cri-containerd-" + kTwo + ".scope", true, "pid:[2]"}, on_host, "container " + kTwo},
      // Neither the names of cgroups inside a container count, nor a systemd in it.
      {{"/docker/" + kOne + "/docker/" + kTwo, true, "pid:[2]"}, on_host, "container " + kOne},
      {{"/docker/" + kOne + "/user.slice/user@0.service", true, "pid:[2]"}, on_host, "container " + kOne},
      // A cgroup whose name users choose is a place of a kind of its own.
      {{"/user.slice/user-1000.slice/user@1000.service/libpod-" + kOne + ".scope/x", true, "pid:[2]"},
       on_host,
       "user's container " + kOne},
      {{"/other.slice/user@1000.service/x-" + kOne + ".scope", false, kHostPids}, on_host, "user's container " + kOne},
      // A container of an unknown kind has pids of its own.
      {{"/lxc.payload.web", true, "pid:[2]"}, on_host, "pid:[2]"},
      {{"/lxc.payload.web", true, ""}, on_host, "pid 7"},
      {{"/system.slice/ssh.service", true, kHostPids}, on_host, ""},  // its status could not be read whole
      // A path that is too long for the kernel to report; a container can make one.
      {{std::nullopt, true, "pid:[2]"}, on_host, "pid 7"},
      {{std::nullopt, false, kHostPids}, on_host, "pid 7"},
      {{std::nullopt, false, kHostPids}, no_hierarchy, ""},
      {{std::nullopt, true, "pid:[2]"}, no_hierarchy, "pid:[2]"},
      {{"/", true, ""}, no_namespaces, ""},
      // With the daemon in a container, processes in that container have no place, and others have theirs.
      {{"/kubepods.slice/cri-containerd-" + kThree + ".scope", false, kHostPids}, in_pod, ""},
      {{"/system.slice/ssh.service", false, kHostPids}, in_pod, ""},
      {{"/kubepods.slice/cri-containerd-" + kTwo + ".scope", true, "pid:[2]"}, in_pod, "container " + kTwo},
      {{"/docker/" + kOne + "/kubepods/" + kTwo, true, "pid:[2]"}, in_node, "container " + kTwo},
      {{"/docker/" + kOne + "/system.slice", false, kHostPids}, in_node, ""},
      {{"/docker/" + kTwo, true, "pid:[2]"}, in_node, "container " + kTwo},
      {{"/docker/" + kTwo + "/kubepods/" + kThree, true, "pid:[2]"}, in_node, "container " + kTwo},
  };
  for (const auto& [process, daemon, place] : cases) {
    INFO(process.cgroup.value_or("unknown") << " by a daemon in " << daemon.cgroup.value_or("unknown"));
    CHECK(PlaceOf(process, daemon, 7) == place);
    CHECK(PlaceWithClaim(0, place) == place);
    CHECK(PlaceWithClaim(3, place) == "claim 3");
  }
}

TEST_CASE("users manage their clients from the host, and from inside a place only those there") {
  const std::string pod = "container " + kOne;
  const std::string other_pod = "container " + kTwo;
  const struct {
    Principal caller;
    std::uint32_t uid;
    Principal owner;
    bool may;
  } cases[] = {
      {kPodUser, kPodUser, kPodUser, true},
      {kPodUser, 1001, 1001, false},
      {0, kPodUser, kPodUser, false},
      // Two pods that run as root.
      {{0, pod}, 0, {0, pod}, true},
      {{0, pod}, 0, {0, other_pod}, false},
      {{0, pod}, 0, 0, false},
      {0, 0, {0, pod}, true},
      {{0, pod}, 0, {0, "claim 1"}, false},
      {{0, "claim 1"}, 0, {0, "claim 1"}, true},
      {{0, "claim 1"}, 0, {0, "claim 2"}, false},
      // Of one pod, two users.
      {{0, pod}, kPodUser, {kPodUser, pod}, false},
      // A user's rootless container, and the other way round.
      {kPodUser, kPodUsersSub, {kPodUser, "user's container " + kOne}, true},
      {kPodUser, kPodUsersSub, kPodUser, true},
      {kPodUsersSub, kPodUser, kPodUser, false},
      {kPodUsersSub, kPodUsersSub, kPodUser, true},
      {kPodUsersSub, kPodUsersSub + 1, kPodUser, false},
      {{kPodUser, "user's container " + kOne}, kPodUser, kPodUser, false},
      {{kPodUser, "user's container " + kOne}, kPodUsersSub, {kPodUser, "user's container " + kOne}, true},
      {{kPodUser, "pid:[2]"}, kPodUser, {kPodUser, "pid:[2]"}, true},
      {{kPodUser, "pid:[2]"}, kPodUser, kPodUser, false},
  };
  for (const auto& [caller, uid, owner, may] : cases) {
    INFO(Text(caller) << ", a client as uid " << uid << " of " << Text(owner));
    CHECK(MayManage(caller, uid, owner) == may);
  }
}

TEST_CASE("texts name a principal with the first twelve digits of a container's id") {
  CHECK(Text(Principal(0)) == "uid 0");
  CHECK(Text(Principal(0, "container " + kOne)) == "uid 0 in container aaaaaaaaaaaa");
  CHECK(Text(Principal(1, "user's container " + kOne)) == "uid 1 in user's container aaaaaaaaaaaa");
  CHECK(Text(Principal(1, "claim 3")) == "uid 1 in claim 3");
  CHECK(IsGiven("container " + kOne));
  CHECK(IsGiven("claim 3"));
  for (const char* place : {"", "user's container 1", "pid:[2]", "pid 7"})
    CHECK(!IsGiven(place));
  CHECK(PlaceLimit(10) == 5);
  CHECK(PlaceLimit(1) == 1);
  CHECK(PlaceLimit(11) == 6);
  CHECK(PlaceLimit(100, 20) == 20);
}

TEST_CASE("a process's status shows how deep it is in pid namespaces") {
  CHECK(PidDepthOf("Name:\tx\nNSpid:\t7\nNSpgid:\t7\t8\n") == 1);
  CHECK(PidDepthOf("Name:\tx\nNSpid:\t7\t1\nNSpgid:\t7\n") == 2);
  CHECK(PidDepthOf("Name:\tx\nGroups:\t1 2 3") == 0);
  CHECK(PidDepthOf("Name:\tx\nNSpid:\t7\t1") == 2);
}

TEST_CASE("clients of one uid in two containers have groups of their own, which claims and rules may join") {
  boost::asio::io_context io;
  Config config;
  Core core(io, {}, config);
  const auto add = [&core](std::uint64_t pid, const std::string& place, std::uint32_t uid = 0,
                           const std::string& group = "job") -> Client& {
    NewClient fresh;
    fresh.identity.pid = pid;
    fresh.identity.uid = uid;
    fresh.identity.place = place;
    fresh.group_name = group;
    return core.AddClient(std::move(fresh));
  };
  Client& one = add(1, "container " + kOne);
  Client& again = add(2, "container " + kOne);
  Client& two = add(3, "container " + kTwo);
  Client& host = add(4, "");
  CHECK(one.group == again.group);
  for (const Client* other : {&two, &host})
    CHECK(one.group != other->group);
  CHECK(two.group != host.group);
  CHECK(two.group->name == "job");
  CHECK(*two.principal == Principal(0, "container " + kTwo));
  core.Stop();

  config.rules.push_back({.group = "job", .join = "all"});
  SECTION("not by a rule that users can choose to match") {
    CHECK(GroupNamerOf(one, config) == GroupNamer::kClient);
  }
  SECTION("by a rule that they cannot choose, whose group no client joins by its name") {
    config.rules[0] = {.uid = 0, .group = "job", .join = "all"};
    CHECK(GroupNamerOf(one, config) == GroupNamer::kRule);
    Registry registry;
    const auto add_to = [&registry](std::uint64_t pid, const std::string& place) -> Client& {
      NewClient fresh;
      fresh.identity.pid = pid;
      fresh.identity.place = place;
      return registry.Add(std::move(fresh), 0);
    };
    Client& first = add_to(1, "container " + kOne);
    Client& second = add_to(2, "container " + kTwo);
    Client& stranger = add_to(3, "container " + kThree);
    registry.MoveToGroup(first, "all", GroupNamer::kRule);
    registry.MoveToGroup(second, "all", GroupNamer::kRule);
    registry.MoveToGroup(stranger, "all", GroupNamer::kClient);
    CHECK(first.group == second.group);
    CHECK(first.group != stranger.group);
    registry.MoveToGroup(first, "all", GroupNamer::kClaims);
    CHECK(first.group != second.group);
    stranger.identity.uid = 5;
    registry.MoveToGroup(stranger, "all", GroupNamer::kClaims);
    CHECK(first.group == stranger.group);
  }
}

TEST_CASE("a claim's principal stays a place of its own when a claim with a socket has ended") {
  Client client;
  client.identity.uid = client.identity.owner = 0;
  client.identity.claim_socket = 9;
  SetClaim(client, nullptr);
  CHECK(*client.principal == Principal(0, "claim 9"));
  client.identity.claim_socket = 0;
  Claim claim;
  claim.id = 4;
  SetClaim(client, std::make_shared<const Claim>(claim));
  CHECK(*client.principal == Principal(0, "claim 4"));
  client.identity.place = "container " + kOne;
  SetClaim(client, nullptr);
  CHECK(*client.principal == Principal(0, "container " + kOne));
}

TEST_CASE("/proc gives the place of this process; a process that has ended is in a place of its own") {
  const int pidfd = SystemPeerCalls().open_pidfd(::getpid());
  REQUIRE(pidfd >= 0);
  const UniqueFd own(pidfd);
  CHECK(ReadProcess(::getpid(), own.Get()).place.empty());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const UniqueFd ended(SystemPeerCalls().open_pidfd(child));
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(ReadProcess(child, ended.Get()).place == "pid " + std::to_string(child));
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED);
}
