// How live clients follow claims that are put, changed and ended.
#include <boost/asio/io_context.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "daemon/core.h"
#include "daemon/registry/effective_words.h"
#include "tests/catch.h"
#include "tests/unit/daemon/believing.h"
#include "tests/unit/daemon/claims.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

struct ClaimsWorld {
  explicit ClaimsWorld(Config config = test::Believing()) : core(io, {}, std::move(config)) {
    core.SetCgroups(InodesOf(cgroups));
  }
  Claim& Put(Claim claim) {
    last = std::move(claim);
    REQUIRE(core.PutClaim(last, {7, 0}));
    return last;
  }
  boost::asio::io_context io;
  CgroupTable cgroups{{"/a", 1}, {"/a/b", 2}, {"/a/b/c", 3}, {"/ab", 4}};
  Core core;
  Claim last;
};

}  // namespace

TEST_CASE("clients follow a claim when they connect, and when it is put, changed or removed, or expires") {
  ClaimsWorld world;
  Core& core = world.core;
  Claim& claim = world.Put(MakeClaim("c", "/a/b"));
  claim.priority = 20;
  world.Put(claim);
  Client& inside = core.AddClient(ClientIn("/a/b/c", 1, 50));
  Client& outside = core.AddClient(ClientIn("/ab", 2, 50));
  NewClient inexact = ClientIn("/a/b", 3, 50);
  inexact.identity.is_cgroup_exact = false;
  Client& unknown = core.AddClient(std::move(inexact));
  CHECK(inside.effective.priority == 20);
  CHECK(HintNote(inside, core.Settings()) == "priority hint 50 not used: claim \"c\" set 20");
  CHECK(outside.effective.priority == 50);
  CHECK(unknown.effective.priority == 50);
  CHECK(core.ClientsOf(*core.Claims().Find("c")) == 1);
  claim.priority = -3;
  world.Put(claim);
  CHECK(inside.effective.priority == -3);
  CHECK(core.Events().Remembered().back().ReasonText() == "claim \"c\" was changed by uid 0 (pid 7)");
  const std::size_t events = core.Events().Remembered().size();
  world.Put(claim);
  CHECK(core.Events().Remembered().size() == events);  // nothing has changed
  REQUIRE(core.PutClaim(MakeClaim("c", "/ab"), {7, 0}, true));
  CHECK(outside.claim == nullptr);
  CHECK(core.DeleteClaim("c", {7, 0}) != nullptr);
  CHECK(core.DeleteClaim("c", {7, 0}) == nullptr);
  CHECK(inside.effective.priority == 50);
  CHECK(inside.claim == nullptr);

  claim.ttl_ns = policy::kNsPerS;
  world.Put(claim);
  CHECK(inside.effective.priority == -3);
  core.EndStaleClaims(MonotonicNs());
  CHECK(inside.effective.priority == -3);
  core.EndStaleClaims(MonotonicNs() + claim.ttl_ns);
  CHECK(inside.effective.priority == 50);
  claim.ttl_ns = 0;
  world.Put(claim);
  world.cgroups["/a/b"] = 77;
  CHECK(core.AddClient(ClientIn("/a/b", 4, 50)).claim == nullptr);
  core.EndStaleClaims(MonotonicNs());
  CHECK(core.Claims().All().empty());
  CHECK(inside.claim == nullptr);
  core.Stop();
}

TEST_CASE("a process that connects through a claim's socket has that claim, in whatever cgroup it runs") {
  ClaimsWorld world;
  Core& core = world.core;
  std::vector<std::string> calls;
  std::string broken;
  core.SetClaimSockets({.open = [&](const Claim& claim) -> Result<void> {
                          calls.push_back("open " + claim.name);
                          return broken.empty() ? Result<void>() : Fail(broken, "remedy");
                        },
                        .close = [&](const Claim& claim) { calls.push_back("close " + claim.name); }});
  Claim pod = MakeClaim("pod", "");
  pod.has_socket = true;
  pod.priority = 20;
  REQUIRE(core.PutClaim(pod, {7, 0}, true));
  CHECK(calls.empty());
  world.Put(pod);
  CHECK(calls == std::vector<std::string>{"open pod"});
  const std::uint64_t id = core.Claims().Find("pod")->id;
  Claim other = MakeClaim("other", "/a/b");
  other.priority = -20;
  world.Put(other);
  NewClient fresh = ClientIn("/a/b", 1, 50);
  fresh.identity.claim_socket = id;
  Client& client = core.AddClient(std::move(fresh));
  CHECK(client.effective.priority == 20);  // not by the cgroup
  pod.priority = 21;
  world.Put(pod);
  CHECK(client.effective.priority == 21);
  core.EndStaleClaims(MonotonicNs());  // the claim has no cgroup, so it cannot end with one
  CHECK(client.effective.priority == 21);
  calls.clear();
  core.DeleteClaim("pod", {7, 0});
  CHECK(calls == std::vector<std::string>{"close pod"});
  CHECK(client.claim == nullptr);
  CHECK(client.effective.priority == 50);
  // A later claim of the same name is another claim.
  world.Put(pod);
  CHECK(client.claim == nullptr);
  // A claim whose socket cannot be made is not added.
  broken = "no socket";
  pod.name = "third";
  CHECK(core.PutClaim(pod, {7, 0}).error().what == "no socket");
  CHECK(core.Claims().Find("third") == nullptr);
  // A claim with a cgroup and a socket may lose the socket.
  broken.clear();
  other.has_socket = true;
  world.Put(other);
  calls.clear();
  other.has_socket = false;
  world.Put(other);
  CHECK(calls.back() == "close other");
  core.Stop();
}

TEST_CASE("a group's name belongs to the claim, or to the claims that give it") {
  ClaimsWorld world;
  Core& core = world.core;
  const auto add = [&](const std::string& cgroup, std::uint64_t pid, std::uint32_t uid) -> Client& {
    NewClient fresh = ClientIn(cgroup, pid);
    fresh.identity.uid = uid;
    fresh.group_name = "ranks";
    return core.AddClient(std::move(fresh));
  };
  Client& one = add("/a/b", 1, 0);
  Client& two = add("/a/b", 2, 0);
  Client& stranger = add("/ab", 3, 0);
  CHECK(one.group == stranger.group);
  world.Put(MakeClaim("c", "/a"));
  CHECK(one.group == two.group);
  CHECK(one.group != stranger.group);
  CHECK(one.group->name == "ranks");
  Claim other = MakeClaim("d", "/ab");
  world.Put(other);
  CHECK(one.group != stranger.group);
  // Claims of one group make their clients one group, whatever their uids.
  Client& users = add("/ab", 4, 1000);
  other.group = "gang";
  world.Put(other);
  CHECK(users.group == stranger.group);
  Claim first = MakeClaim("c", "/a");
  first.group = "gang";
  world.Put(first);
  CHECK(one.group == users.group);
  CHECK(one.group->name == "gang");
  // A client without a claim that names its group "gang" is not in it.
  NewClient fresh = ClientIn("/elsewhere", 5);
  fresh.group_name = "gang";
  CHECK(core.AddClient(std::move(fresh)).group != one.group);
  core.DeleteClaim("c", {7, 0});
  CHECK(one.group == two.group);
  CHECK(one.group->name == "ranks");
  core.Stop();
}
