// Matching of addresses, selectors and rules, part by part.
#include <string>

#include "daemon/admin/selector.h"
#include "daemon/config/match.h"
#include "daemon/registry/effective.h"
#include "daemon/registry/pci_address.h"
#include "daemon/registry/registry.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

// A pointer, because GCC 14 warns of a dangling reference when a function with a temporary argument returns one.
Client& AddPython(Registry& registry, const char* cgroup = "/user.slice/job-1") {
  NewClient fresh;
  fresh.identity.pid = 10;
  fresh.identity.uid = 1000;
  fresh.identity.gid = 100;
  fresh.identity.exe = "/usr/bin/python3.11";
  fresh.identity.cgroup = cgroup;
  fresh.identity.may_raise = true;  // rights/roles_test.cc tests which clients a rule may raise
  fresh.group_name = "job";
  return registry.Add(std::move(fresh), 0);
}

}  // namespace

TEST_CASE("a PCI address may have a partition, and any wrong character makes it invalid") {
  for (const char* good : {"0000:c1:00.0", "FFFF:FF:1f.7", "0000:c1:00.0/3", "0000:c1:00.0/0123"})
    CHECK(IsPciAddress(good));
  for (const char* bad : {"", "0000:c1:00", "0000:c1:00.0/", "0000:c1:00.0/x", "0000:c1:00.0/12345", "0000-c1:00.0",
                          "g000:c1:00.0", "0000:c1:00.0 "}) {
    CHECK(!IsPciAddress(bad));
  }
  const std::string good = "0000:c1:00.0/1";
  REQUIRE(IsPciAddress(good));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = 'x';
    INFO(bad);
    CHECK(!IsPciAddress(bad));
    CHECK((!IsPciAddress(good.substr(0, i)) || i == 12));  // without the partition it is valid, too
  }
}

TEST_CASE("a selector matches only if each of its parts does") {
  Registry registry;
  const Client& client = AddPython(registry);
  const struct {
    void (*set)(v1::Selector&);
    bool fits;
    const char* text;
  } cases[] = {
      {[](v1::Selector& s) { s.add_pid(10); }, true, "pid 10"},
      {[](v1::Selector& s) { s.add_pid(11); }, false, "pid 11"},
      {[](v1::Selector& s) { s.set_uid(1000); }, true, "uid 1000"},
      {[](v1::Selector& s) { s.set_uid(1); }, false, "uid 1"},
      {[](v1::Selector& s) { s.set_group("job"); }, true, "group \"job\""},
      {[](v1::Selector& s) { s.set_group("\x1b"); }, false, "group \"?\""},
      {[](v1::Selector& s) { s.set_cgroup("/user.slice"); }, true, "cgroup \"/user.slice\""},
      {[](v1::Selector& s) { s.set_cgroup("/user"); }, false, "cgroup \"/user\""},
      {[](v1::Selector& s) { s.set_exe("python3.11"); }, true, "exe \"python3.11\""},
      {[](v1::Selector& s) { s.set_exe("python"); }, false, "exe \"python\""},
      {[](v1::Selector& s) { s.set_all(true); }, true, "\"all\": nobody is connected"},
      {[](v1::Selector&) {}, false, "\"all\": nobody is connected"},
  };
  for (const auto& [set, fits, text] : cases) {
    v1::Selector selector;
    set(selector);
    INFO(text);
    CHECK(Matches(selector, client) == fits);
    CHECK(IsEmpty(selector) == (selector.ByteSizeLong() == 0));
    CHECK(Describe(selector) == text);
  }
  v1::Selector several;
  several.add_pid(9);
  several.add_pid(10);
  CHECK(Matches(several, client));
  several.set_uid(0);
  CHECK(!Matches(several, client));
  several.set_uid(1000);
  several.set_group("job");
  several.set_exe("python3.11");
  several.set_cgroup("/user.slice");
  several.set_all(true);
  CHECK(Matches(several, client));
  CHECK(Describe(several) == "pid 9, pid 10, uid 1000, group \"job\", cgroup \"/user.slice\", exe \"python3.11\"");
  several.set_cgroup("/system.slice");
  CHECK(!Matches(several, client));
  v1::Selector many;
  for (std::uint64_t pid = 1; pid < 10'000; ++pid)
    many.add_pid(pid);
  CHECK(Describe(many).size() < 300);
}

TEST_CASE("a rule matches only if each of its parts does") {
  const std::string container(64, 'a');
  Registry registry;
  const Client& client = AddPython(registry, ("/docker/" + container).c_str());
  const struct {
    Rule rule;
    bool fits;
  } cases[] = {
      {{}, true},
      {{.uid = 1000}, true},
      {{.uid = 1001}, false},
      {{.gid = 100}, true},
      {{.gid = 101}, false},
      {{.exe = "/usr/bin/python3.11"}, true},
      {{.exe = "ruby"}, false},
      {{.cgroup = "/docker"}, true},
      {{.cgroup = "/podman"}, false},
      {{.container = container.substr(0, 12)}, true},
      {{.container = std::string(12, 'b')}, false},
      {{.group = "job"}, true},
      {{.group = "other"}, false},
  };
  for (const auto& [rule, fits] : cases) {
    Config config;
    config.rules.push_back(rule);
    config.rules[0].priority = 42;
    CHECK((EffectiveOf(client, config).priority == 42) == fits);
  }
}

TEST_CASE("a rule groups clients by cgroup, where that is known") {
  Registry registry;
  Config config;
  config.rules.push_back({.join = std::string(kJoinCgroup)});
  CHECK(GroupNameOf(AddPython(registry), config) == "/user.slice/job-1");
  CHECK(GroupNameOf(AddPython(registry, ""), config) == "job");
  config.rules[0].join = std::string(kJoinNone);
  CHECK(GroupNameOf(AddPython(registry), config).empty());
  config.rules[0].join.reset();
  CHECK(GroupNameOf(AddPython(registry), config) == "job");
}

TEST_CASE("executables, cgroups and containers are matched by whole names") {
  CHECK(ExeMatches("/usr/bin/x", "/usr/bin/x"));
  CHECK(ExeMatches("x", "/usr/bin/x"));
  CHECK(!ExeMatches("bin/x", "/usr/bin/x"));
  CHECK(!ExeMatches("x", ""));
  CHECK(CgroupMatches("/a", "/a/b"));
  CHECK(CgroupMatches("/a/", "/a"));
  CHECK(CgroupMatches("/", "/a"));
  CHECK(!CgroupMatches("/a", "/ab"));
  CHECK(!CgroupMatches("/", ""));
  CHECK(ExeMatches("x", "x"));
  CHECK(!ExeMatches("x", "y"));
  CHECK(!CgroupMatches("/a/b", "/a"));
  CHECK(CgroupMatches("", "/a"));
  for (const char* bad :
       {"", "0123456789a", "0123456789ag", "0123456789a/", "0123456789a:", "0123456789aA", "0123456789a`"})
    CHECK(!IsContainerId(bad));
  CHECK(IsContainerId("0123456789af"));
  CHECK(!IsContainerId(std::string(65, 'a')));
  const std::string not_hex = "/docker/" + std::string(63, 'a') + "g";
  CHECK(!ContainerMatches(std::string(12, 'a'), not_hex));
  CHECK(!ContainerMatches("docker", "/docker"));
}
