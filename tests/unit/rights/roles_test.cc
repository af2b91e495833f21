// What users may do themselves: only the kernel's credentials and the configuration decide that.
#include "daemon/registry/roles.h"

#include <unistd.h>

#include "daemon/config/match.h"
#include "daemon/core.h"
#include "daemon/registry/effective_words.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

const Actor kRoot{.pid = 7, .uid = 0, .is_admin = true};
const Actor kUser{.pid = 8, .uid = 1000, .is_admin = false};

NewClient MakeClient(std::uint64_t pid, bool may_raise = false) {
  NewClient fresh;
  fresh.identity.pid = pid;
  fresh.identity.uid = 1000;
  fresh.identity.may_raise = may_raise;
  fresh.identity.exe = "/home/alice/train";
  fresh.identity.cgroup = "/user.slice/user-1000.slice/user@1000.service/app.slice/mine.scope";
  fresh.group_name = "mine";
  return fresh;
}

PeerIdentity Peer(uid_t uid, gid_t gid, std::vector<gid_t> groups = {}) {
  PeerIdentity peer;
  peer.uid = uid;
  peer.gid = gid;
  peer.groups = std::move(groups);
  return peer;
}

int PriorityBy(const Rule& rule, bool may_raise = false) {
  boost::asio::io_context io;
  Config config;
  config.rules.push_back(rule);
  Core core(io, {}, config);
  return core.AddClient(MakeClient(1, may_raise)).effective.priority;
}

}  // namespace

TEST_CASE("without configuration a user can lower and not raise, as with nice") {
  boost::asio::io_context io;
  Core core(io, {}, {});
  Client& client = core.AddClient(MakeClient(1));
  REQUIRE(core.SetHints(client, {.priority = 50, .weight = 10'000}));
  CHECK(client.effective.priority == 0);
  CHECK(client.effective.limited);
  CHECK(client.effective.weight == 100);
  CHECK(HintNote(client, core.Settings())
            .find("priority hint 50 limited to 0 by the default ceiling of uid 1000 (users can lower "
                  "and not raise; an administrator can") == 0);
  REQUIRE(core.SetHints(client, {.priority = -50, .weight = 50}));
  CHECK(client.effective.priority == -50);
  CHECK(client.effective.weight == 50);
  CHECK(HintNote(client, core.Settings()).empty());

  core.SetPriority({&client}, 30, kUser);
  core.SetWeight({&client}, 300, kUser);
  CHECK(client.effective.priority == 0);
  CHECK(client.effective.weight == 100);
  // An administrator may raise its clients.
  core.SetPriority({&client}, 30, kRoot);
  core.SetWeight({&client}, 300, kRoot);
  CHECK(client.effective.priority == 30);
  CHECK(client.effective.weight == 300);
}

TEST_CASE("a configured ceiling allows raising as well as limiting it") {
  const OwnCeiling none = OwnCeilingOf(1000, false, {});
  CHECK(none.priority == 0);
  CHECK(none.weight == 100);
  CHECK(!none.is_configured);
  CHECK(OwnCeilingOf(1000, true, {}).priority == 100);
  CHECK(OwnCeilingOf(1000, true, {}).weight == 10'000);
  Config config;
  config.default_ceiling.priority = 20;
  config.ceilings[1000] = {.priority = 60, .weight = 500};
  CHECK(OwnCeilingOf(1000, false, config).priority == 60);
  CHECK(OwnCeilingOf(1000, false, config).weight == 500);
  CHECK(OwnCeilingOf(1000, false, config).is_configured);
  CHECK(OwnCeilingOf(1001, false, config).priority == 20);
  CHECK(OwnCeilingOf(1001, false, config).weight == 100);
  // Settings for all users bind root, too.
  CHECK(OwnCeilingOf(0, true, config).priority == 20);
}

TEST_CASE("uid and groups from the kernel decide which processes may raise, and which may read") {
  const RoleGroups groups{.administrators = 44, .readers = 45};
  const uid_t stranger = ::geteuid() + 1000;
  CHECK(MayRaise(Peer(0, 0), Origin{}, groups));
  CHECK(MayRaise(Peer(::geteuid(), 7), Origin{}, groups));
  CHECK(MayRaise(Peer(stranger, 44), Origin{}, groups));
  CHECK(MayRaise(Peer(stranger, 7, {1, 44}), Origin{}, groups));
  CHECK(!MayRaise(Peer(stranger, 7, {1, 45}), Origin{}, groups));
  CHECK(!MayRaise(Peer(stranger, 0), Origin{}, RoleGroups{}));
  CHECK(MayReadAll(Peer(stranger, 7, {45}), Origin{}, groups));
  CHECK(!MayReadAll(Peer(stranger, 44), Origin{}, groups));
  // The root of a container can give its processes any groups.
  Origin contained;
  contained.place = "container 1";
  CHECK(!MayReadAll(Peer(stranger, 7, {45}), contained, groups));
  CHECK(!MayRaise(Peer(0, 0), contained, groups));
  CHECK(!MayRaise(Peer(stranger, 44), contained, groups));
  contained = Origin();
  contained.claim_socket = 1;
  CHECK(!MayReadAll(Peer(stranger, 7, {45}), contained, groups));
  CHECK(!MayRaise(Peer(0, 0), contained, groups));
  CHECK(!MayReadAll(Peer(stranger, 45), Origin{}, RoleGroups{}));
  CHECK(!FindRoleGroups("").readers);
  CHECK(!FindRoleGroups("no such group").readers);
}

TEST_CASE("a rule that a user can choose to match raises only clients of users who may raise") {
  const struct {
    Rule rule;
    bool is_by_choice;
  } cases[] = {
      {{.exe = "train"}, true},
      {{.exe = "/home/alice/train"}, true},
      {{.group = "mine"}, true},
      {{.cgroup = "/user.slice/user-1000.slice/user@1000.service/app.slice/mine.scope"}, true},
      {{.exe = "train", .group = "mine"}, true},
      {{.uid = 1000}, false},
      {{.uid = 1000, .exe = "train"}, false},
      {{.cgroup = "/user.slice/user-1000.slice"}, false},
  };
  for (auto [rule, is_by_choice] : cases) {
    CHECK(rule.IsByChoice() == is_by_choice);
    rule.priority = 60;
    CHECK(PriorityBy(rule) == (is_by_choice ? 0 : 60));
    CHECK(PriorityBy(rule, true) == 60);
    rule.priority = -60;
    CHECK(PriorityBy(rule) == -60);
  }
}

TEST_CASE("a scope that a user names like a container is not one") {
  const std::string id(64, 'a');
  const std::string inner(64, 'b');
  for (const std::string& theirs :
       {"/user.slice/user-1000.slice/user@1000.service/app.slice/x-" + id + ".scope",
        "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope/container",
        "/user.slice/user-1000.slice/session-1.scope/" + id, "/other.slice/user@1000.service/x-" + id + ".scope"}) {
    CHECK(!ContainerMatches(id, theirs));
  }
  for (const std::string& systems :
       {"/system.slice/docker-" + id + ".scope", "/machine.slice/libpod-" + id + ".scope/container",
        "/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" + id + ".scope", "/docker/" + id}) {
    CHECK(ContainerMatches(id, systems));
    // A scope that a container makes inside itself.
    CHECK(ContainerMatches(id, systems + "/x-" + inner + ".scope"));
    CHECK(!ContainerMatches(inner, systems + "/x-" + inner + ".scope"));
  }
}

TEST_CASE("every change is logged with the login user of the caller who became root") {
  boost::asio::io_context io;
  Core core(io, {}, {});
  Client& client = core.AddClient(MakeClient(1));
  core.SetPriority({&client}, 5, {.pid = 7, .uid = 0, .is_admin = true, .login_uid = 1234});
  CHECK(core.Events().Remembered().back().ReasonText() == "set to 5 by uid 0 (pid 7, login uid 1234)");
  core.SetPriority({&client}, 6, kRoot);
  CHECK(core.Events().Remembered().back().ReasonText() == "set to 6 by uid 0 (pid 7)");
}
