// The registry's records, groups, priorities and weights.
#include "daemon/registry/registry.h"

#include <cstdio>
#include <string>
#include <vector>

#include "daemon/config/match.h"
#include "daemon/registry/effective.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

NewClient Make(std::uint64_t pid, std::uint32_t uid, const std::string& group = {}) {
  NewClient fresh;
  fresh.identity.pid = pid;
  fresh.identity.uid = uid;
  fresh.identity.exe = "/usr/bin/python3.11";
  fresh.identity.cgroup = "/user.slice/job-1";
  fresh.group_name = group;
  return fresh;
}

}  // namespace

TEST_CASE("clients, groups and devices come and go together") {
  Registry registry;
  Client& first = registry.Add(Make(1, 1000, "job"), 5);
  Client& second = registry.Add(Make(2, 1000, "job"), 5);
  Client& stranger = registry.Add(Make(3, 1001, "job"), 5);
  Client& loner = registry.Add(Make(4, 1000), 5);
  CHECK(first.group == second.group);
  CHECK(first.group != stranger.group);  // same name, other uid: another group
  CHECK(loner.group->name == "pid 4");

  REQUIRE(registry.Attach(first, {0, "0000:C1:00.0", "GPU", "amd", 4, {}}));
  REQUIRE(registry.Attach(second, {7, "0000:c1:00.0", "liar", "x", 1, {}}));
  REQUIRE(registry.Devices().size() == 1);
  CHECK(registry.Devices().begin()->second->name == "GPU");
  CHECK(registry.Devices().begin()->second->attachments.size() == 2);
  registry.Remove(first.id);
  CHECK(registry.Devices().size() == 1);
  registry.Remove(second.id);
  CHECK(registry.Devices().empty());
  CHECK(registry.Find(loner.id) == &loner);
  CHECK(registry.FindPid(3).size() == 1);
  registry.Remove(999);
}

TEST_CASE("what a client reports about devices and queues is checked") {
  Registry registry;
  Client& client = registry.Add(Make(1, 1000), 0);
  CHECK(registry.Attach(client, {64, "0000:c1:00.0", "", "", 0, {}}).error().what == "device slot 64 is out of range");
  REQUIRE(registry.Attach(client, {63, "0000:c1:00.0", "", "", 0, {}}));
  CHECK(!registry.Attach(client, {63, "0000:c2:00.0", "", "", 0, {}}));
  CHECK(!registry.Attach(client, {1, "c1:00.0", "", "", 0, {}}));
  CHECK(registry.Devices().size() == 1);

  CHECK(registry.AddQueue(client, {1, 0, 0, 0, 0, 0}, 2));
  CHECK(!registry.AddQueue(client, {1, 0, 0, 0, 0, 0}, 2));
  CHECK(!registry.AddQueue(client, {2, 64, 0, 0, 0, 0}, 2));
  CHECK(registry.AddQueue(client, {2, 0, 0, 0, 0, 0}, 2));
  CHECK(registry.AddQueue(client, {3, 0, 0, 0, 0, 0}, 2).error().remedy.find("queues_per_client") != std::string::npos);
  CHECK(registry.RemoveQueue(client, 1));
  CHECK(!registry.RemoveQueue(client, 1));
}

TEST_CASE("a device is known by its address and uuid, whatever its ordinal") {
  const std::string address = "0000:c1:00.0";
  Registry registry;
  std::uint32_t next_slot = 0;
  Client& client = registry.Add(Make(1, 1000), 0);
  const auto attach = [&](const std::string& where, const std::string& uuid) {
    return (*registry.Attach(client, {next_slot++, where, "", "", 0, uuid}))->device->pci_address;
  };
  SECTION("partitions of one function are told apart, and keep their names") {
    CHECK(attach(address, "GPU-a") == address);
    CHECK(attach(address, "GPU-b") == address + "/1");
    CHECK(attach(address, "GPU-a") == address);
    CHECK(attach("0000:C1:00.0", "GPU-c") == address + "/2");
    CHECK(attach("0000:c2:00.0", "GPU-b") == "0000:c2:00.0");
    CHECK(registry.Devices().size() == 4);
    registry.Remove(client.id);
    CHECK(registry.Devices().empty());
    Client& later = registry.Add(Make(2, 1000), 0);
    CHECK((*registry.Attach(later, {0, address, "", "", 0, "GPU-b"}))->device->pci_address == address + "/1");
  }
  SECTION("without a uuid the address counts") {
    CHECK(attach(address, "") == address);
    CHECK(attach(address, "") == address);
    CHECK(attach(address, "GPU-a") == address);  // the same device, from a client that also knows its uuid
    CHECK(registry.Devices().size() == 1);
  }
  SECTION("a client that names the partition itself is believed") {
    CHECK(attach(address + "/3", "GPU-z") == address + "/3");
    CHECK(attach(address + "/3", "") == address + "/3");
    CHECK(attach(address, "GPU-a") == address);
  }
  SECTION("invented uuids fill no memory") {
    for (int i = 0; i < 64; ++i) {
      Client& liar = registry.Add(Make(9, 1000), 0);
      for (std::uint32_t slot = 0; slot < 60; ++slot) {
        const std::string uuid = std::to_string(i) + "-" + std::to_string(slot);
        REQUIRE(registry.Attach(liar, {slot, address, "", "", 0, uuid}));
      }
    }
    CHECK(registry.Devices().size() == 64);
    // Nor do they block others from names after they have left.
    const std::uint64_t version = registry.Names().Version();
    CHECK(attach(address, "GPU-a") == address);
    std::vector<std::uint64_t> liars;
    for (const auto& [id, other] : registry.Clients()) {
      if (id != client.id) liars.push_back(id);
    }
    for (const std::uint64_t liar : liars)
      registry.Remove(liar);
    const std::string own = attach(address, "GPU-b");
    CHECK(own == address + "/1");
    CHECK(attach(address, "GPU-b") == own);
    CHECK(registry.Names().Version() != version);
  }
  SECTION("unused names make room, wherever they are") {
    const auto address_of = [](std::uint32_t i) {
      char text[16];
      std::snprintf(text, sizeof text, "%04x:00:00.0", i);
      return std::string(text);
    };
    for (std::uint32_t i = 0; i < kMaxPartitions; ++i) {
      Client& passing = registry.Add(Make(9, 1000), 0);
      REQUIRE(registry.Attach(passing, {0, address_of(i), "", "", 0, "u"}));
      registry.Remove(passing.id);
    }
    CHECK(attach(address, "GPU-a") == address);
    CHECK(attach(address, "GPU-b") == address + "/1");
    std::size_t kept = 0;
    for (const auto& [at, uuids] : registry.Names().Known())
      kept += uuids.size();
    CHECK(kept <= kMaxPartitions);
  }
  SECTION("attachments are bounded, and one that ends makes room") {
    std::vector<std::uint64_t> many;
    for (std::size_t i = 0; i < kMaxAttachments / 64; ++i) {
      Client& one = registry.Add(Make(9, 1000), 0);
      many.push_back(one.id);
      for (std::uint32_t slot = 0; slot < 64; ++slot)
        REQUIRE(registry.Attach(one, {slot, address, "", "", 0, {}}));
    }
    const auto refused = registry.Attach(client, {9, address, "", "", 0, {}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().Line().find("as many as the daemon keeps") != std::string::npos);
    registry.Remove(many.front());
    CHECK(registry.Attach(client, {9, address, "", "", 0, {}}));
  }
}

TEST_CASE("a container may be on at most half as many different devices as its uid") {
  Registry registry;
  const auto attach = [&](const std::string& place, const std::string& address) {
    NewClient fresh = Make(1, 0);
    fresh.identity.place = place;
    Client& client = registry.Add(std::move(fresh), 0);
    const auto attached = registry.Attach(client, {0, address, "", "", 0, {}}, 4);
    return attached ? std::string() : attached.error().what;
  };
  CHECK(attach("container a", "0000:c1:00.0").empty());
  CHECK(attach("container a", "0000:c2:00.0").empty());
  CHECK(attach("container a", "0000:c3:00.0") == "uid 0 in container a is on 2 different GPUs, and may be on 2");
  CHECK(attach("container a", "0000:c2:00.0").empty());
  CHECK(attach("container b", "0000:c3:00.0").empty());
  CHECK(attach("container b", "0000:c4:00.0").empty());
  CHECK(attach("container c", "0000:c5:00.0") == "uid 0 is on 4 different GPUs, and may be on 4");
  CHECK(attach("", "0000:c5:00.0") == "uid 0 is on 4 different GPUs, and may be on 4");
  std::vector<std::uint64_t> ids;
  for (const auto& [id, client] : registry.Clients())
    ids.push_back(id);
  for (const std::uint64_t id : ids)
    registry.Remove(id);
  for (const char* address : {"0000:c1:00.0", "0000:c2:00.0", "0000:c3:00.0", "0000:c4:00.0"})
    CHECK(attach("user's container a", address).empty());
}

TEST_CASE("the number of a user's different devices is bounded over all its uids") {
  Registry registry;
  const auto add = [&](std::uint32_t uid, std::uint32_t owner) -> Client& {
    NewClient fresh = Make(1, uid);
    fresh.identity.owner = owner;
    return registry.Add(std::move(fresh), 0);
  };
  constexpr std::size_t kLimit = 2;
  const auto attach = [&](Client& client, std::uint32_t slot, const std::string& address,
                          const std::string& uuid = {}) {
    return registry.Attach(client, {slot, address, "", "", 0, uuid}, kLimit);
  };
  Client& first = add(1000, 1000);
  Client& second = add(100'003, 1000);
  REQUIRE(attach(first, 0, "0000:c1:00.0", "GPU-a"));
  REQUIRE(attach(second, 0, "0000:c2:00.0"));
  const auto refused = attach(second, 1, "0000:c3:00.0", "GPU-c");
  REQUIRE_FALSE(refused);
  CHECK(
      refused.error().Line() ==
      "uid 1000 (with its subordinate uid 100003) is on 2 different GPUs, and may be on 2; end some clients, or let an "
      "administrator raise gpus_per_uid in [quota]");
  CHECK_FALSE(attach(first, 1, "0000:c1:00.0", "GPU-b"));  // a partition is one, too
  // A refused attachment leaves nothing behind.
  CHECK(registry.Names().Known().size() == 1);
  CHECK(registry.Devices().size() == 2);
  // A device that the user is on already is allowed; other users have their own limit.
  CHECK(attach(second, 1, "0000:c1:00.0", "GPU-a"));
  CHECK(attach(add(1001, 1001), 0, "0000:c3:00.0", "GPU-c"));
  CHECK_FALSE(attach(first, 1, "0000:c3:00.0", "GPU-c"));
  // The second is still on both.
  registry.Remove(first.id);
  CHECK_FALSE(attach(second, 2, "0000:c4:00.0"));
  registry.Remove(second.id);
  CHECK(attach(add(1000, 1000), 0, "0000:c4:00.0"));
}

TEST_CASE("effective priority: override, rule, hint, ceiling") {
  Registry registry;
  Client& client = registry.Add(Make(1, 1000, "job"), 0);
  Config config;
  CHECK(EffectiveOf(client, config).priority == 0);
  client.hint = 30;
  CHECK(EffectiveOf(client, config).source == PrioritySource::kHint);
  Rule rule;
  rule.exe = "python3.11";
  rule.priority = -5;
  config.rules.push_back(rule);
  CHECK(EffectiveOf(client, config).priority == -5);
  client.admin = 60;
  CHECK(EffectiveOf(client, config).priority == 60);
  config.ceilings[1000].priority = 40;
  CHECK(EffectiveOf(client, config).priority == 40);
  CHECK(EffectiveOf(client, config).limited);
  CHECK(EffectiveOf(client, ClientSettings{}, config).priority == -5);
  config.rules[0].uid = 1;  // both must match
  CHECK(EffectiveOf(client, ClientSettings{}, config).priority == 30);
}

TEST_CASE("effective weight: override, rule, hint, ceiling, independent of the priority") {
  Registry registry;
  NewClient fresh = Make(1, 1000, "job");
  fresh.identity.may_raise = true;
  Client& client = registry.Add(std::move(fresh), 0);
  Config config;
  const auto weight = [&] { return EffectiveOf(client, config).weight; };
  CHECK(weight() == 100);
  client.hint_weight = 300;
  client.hint = 7;
  CHECK(weight() == 300);
  config.rules.push_back({.uid = 1000, .weight = 50});
  CHECK(weight() == 50);
  CHECK(EffectiveOf(client, config).weight_source == PrioritySource::kRule);
  CHECK(EffectiveOf(client, config).priority == 7);  // the rule does not set it
  config.rules.insert(config.rules.begin(), {.exe = "python3.11", .priority = 9});
  CHECK(weight() == 300);  // only the first matching rule counts
  CHECK(EffectiveOf(client, config).priority == 9);
  client.admin_weight = 5'000;
  CHECK(weight() == 5'000);
  CHECK(EffectiveOf(client, ClientSettings{}, config).weight == 300);
  config.default_ceiling.weight = 200;
  CHECK(weight() == 200);
  CHECK(EffectiveOf(client, config).weight_limited);
  CHECK(!EffectiveOf(client, config).limited);
  config.ceilings[1000].weight = 1'000;
  CHECK(weight() == 1'000);
}

TEST_CASE("effective latency: override, rule, owner, hint; in a group the strict one of the deciding source") {
  Registry registry;
  Client& client = registry.Add(Make(1, 1000, "job"), 0);
  Config config;
  const auto latency = [&] { return EffectiveOf(client, config).latency; };
  CHECK(latency() == Latency::kAuto);
  client.hint_latency = Latency::kStrict;
  CHECK(latency() == Latency::kStrict);
  client.owner_latency = Latency::kAuto;
  CHECK(latency() == Latency::kAuto);
  config.rules.push_back({.uid = 1000, .latency = Latency::kStrict});
  CHECK(latency() == Latency::kStrict);
  CHECK(EffectiveOf(client, config).latency_source == PrioritySource::kRule);
  client.admin_latency = Latency::kAuto;
  CHECK(latency() == Latency::kAuto);
  CHECK(EffectiveOf(client, ClientSettings{}, config).latency == Latency::kStrict);

  Client& other = registry.Add(Make(2, 1000, "job"), 0);
  REQUIRE(other.group == client.group);
  const auto channel = Channel::Make();
  REQUIRE(channel);
  for (Client* member : {&client, &other}) {
    member->channel = channel->get();
    REQUIRE(registry.Attach(*member, {0, "0000:c1:00.0", "GPU", "amd", 304, ""}, 0));
  }
  const auto together = [&] {
    return GroupValuesOf(*client.group, [](const Client& member) -> const Effective& { return member.own; })
        .latency->latency;
  };
  client.own.latency = Latency::kStrict;
  client.own.latency_source = PrioritySource::kHint;
  other.own = {};
  CHECK(together() == Latency::kStrict);
  other.own.latency_source = PrioritySource::kAdmin;
  CHECK(together() == Latency::kAuto);
}

TEST_CASE("rules put clients into groups") {
  Registry registry;
  Client& first = registry.Add(Make(1, 1000), 0);
  Client& second = registry.Add(Make(2, 1000, "own"), 0);
  Client& stranger = registry.Add(Make(3, 1001), 0);
  Config config;
  const auto apply = [&] {
    for (Client* client : {&first, &second, &stranger})
      registry.MoveToGroup(*client, GroupNameOf(*client, config));
  };
  config.rules.push_back({.exe = "python3.11", .join = "job"});
  apply();
  CHECK(first.group == second.group);
  CHECK(first.group->name == "job");
  CHECK(first.group != stranger.group);
  CHECK(first.group->clients.size() == 2);
  CHECK(!registry.MoveToGroup(first, "job"));

  config.rules[0].join = kJoinCgroup;
  second.identity.cgroup = "/user.slice/job-2";
  apply();
  CHECK(first.group->name == "/user.slice/job-1");
  CHECK(second.group->name == "/user.slice/job-2");

  config.rules[0].join = kJoinNone;
  apply();
  CHECK(second.group->name == "pid 2");

  config.rules.clear();
  apply();
  CHECK(second.group->name == "own");
  // Empty groups leave nothing: the next one of that name starts without their memory.
  first.group->memory.turn_since_ns = 1;
  registry.MoveToGroup(first, "job");
  CHECK(first.group->memory == policy::GroupMemory{});
}

TEST_CASE("rules match by gid and container") {
  const std::string id(64, 'a');
  Registry registry;
  Client& client = registry.Add(Make(1, 1000), 0);
  client.identity.gid = 44;
  client.identity.cgroup = "/system.slice/docker-" + id + ".scope";
  Config config;
  config.rules.push_back({.gid = 44, .container = id.substr(0, 12), .priority = 3});
  CHECK(EffectiveOf(client, config).priority == 3);
  config.rules[0].gid = 45;
  CHECK(EffectiveOf(client, config).priority == 0);
  config.rules[0].gid = 44;
  config.rules[0].container = "bbbbbbbbbbbb";
  CHECK(EffectiveOf(client, config).priority == 0);
}

TEST_CASE("containers are found in cgroups as the runtimes write them") {
  const std::string id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  for (const std::string& cgroup : {
           "/docker/" + id,
           "/system.slice/docker-" + id + ".scope",
           "/machine.slice/libpod-" + id + ".scope/container",
           "/kubepods/besteffort/pod6b1c/" + id,
           "/kubepods.slice/kubepods-pod6b1c.slice/cri-containerd-" + id + ".scope",
           "/kubepods-pod6b1c.slice:cri-containerd:" + id,
           "/kubepods.slice/crio-" + id + ".scope",
           "/default/" + id + "/nested",
       }) {
    INFO(cgroup);
    CHECK(ContainerMatches(id, cgroup));
    CHECK(ContainerMatches(id.substr(0, 12), cgroup));
    CHECK(!ContainerMatches(id.substr(1, 12), cgroup));
    CHECK(!ContainerMatches(id.substr(0, 11), cgroup));  // too short for an id
  }
  // The outermost one counts: inside a container, its users choose the names of cgroups.
  CHECK(!ContainerMatches(id, "/docker/" + std::string(64, 'f') + "/docker/" + id));
  CHECK(!ContainerMatches(id, ""));
  CHECK(!ContainerMatches(id, "/user.slice/" + id.substr(0, 12)));
  CHECK(!ContainerMatches("user.slice/u", "/user.slice/user-1000.slice"));
}

TEST_CASE("hints out of range are reported, each with its range") {
  CHECK(Check(Hints{}));
  CHECK(Check(Hints{.priority = 100, .weight = 1, .deadline_us = 0}));
  CHECK(Check(Hints{.priority = 101}).error().Line() ==
        "priority hint 101 is out of range; give a number from -100 to 100");
  CHECK(Check(Hints{.weight = 0}).error().Line() == "weight hint 0 is out of range; give a number from 1 to 10000");
  CHECK(Check(Hints{.deadline_us = 3'600'000'001}).error().remedy == "give a number from 0 to 3600000000");
}
