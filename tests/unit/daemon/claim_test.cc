// Claims: which processes they apply to, what overrides them, and when they end.
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>

#include "daemon/registry/effective.h"
#include "daemon/registry/effective_words.h"
#include "daemon/state/saved_state.h"
#include "tests/catch.h"
#include "tests/unit/daemon/claims.h"
#include "tests/unit/daemon/folder.h"

using namespace xschedd;
using namespace xschedd::test;

TEST_CASE("invalid claims are refused with a reason") {
  struct Case {
    std::function<void(Claim&)> spoil;
    std::string says;
  };
  const Case cases[] = {
      {[](Claim& c) { c.name = ""; }, "cannot be the name of a claim"},
      {[](Claim& c) { c.name = ".."; }, "cannot be the name of a claim"},
      {[](Claim& c) { c.name = "a b"; }, "cannot be the name of a claim"},
      {[](Claim& c) { c.name = std::string(kMaxClaimNameBytes + 1, 'a'); }, "cannot be the name of a claim"},
      {[](Claim& c) { c.cgroup = ""; }, "with neither a cgroup nor a socket"},
      {[](Claim& c) { c.cgroup = "/"; }, "not the path of a cgroup"},
      {[](Claim& c) { c.cgroup = "a"; }, "not the path of a cgroup"},
      {[](Claim& c) { c.cgroup = "/a/"; }, "not the path of a cgroup"},
      {[](Claim& c) { c.cgroup = "/a//b"; }, "not the path of a cgroup"},
      {[](Claim& c) { c.cgroup = "/a/.."; }, "not the path of a cgroup"},
      {[](Claim& c) { c.cgroup = "/./a"; }, "not the path of a cgroup"},
      {[](Claim& c) { c.cgroup = "/a\x1b"; }, "not the path of a cgroup"},
      {[](Claim& c) { c.cgroup = "/" + std::string(kMaxClaimCgroupBytes, 'a'); }, "not the path of a cgroup"},
      {[](Claim& c) { c.priority = 101; }, "priority 101 is out of range"},
      {[](Claim& c) { c.ceiling = -101; }, "ceiling -101 is out of range"},
      {[](Claim& c) { c.weight = 0; }, "weight 0 is out of range"},
      {[](Claim& c) { c.weight_ceiling = 10'001; }, "weight ceiling 10001 is out of range"},
      {[](Claim& c) { c.memory_limit = 0; }, "a limit of 0 bytes of device memory is out of range"},
      {[](Claim& c) { c.memory_limit = 24; }, "a limit of 24 bytes of device memory is out of range"},
      {[](Claim& c) { c.memory_limit = ~std::uint64_t{0}; }, "bytes of device memory is out of range"},
      {[](Claim& c) { c.priority = 5, c.ceiling = 4; }, "priority 5 is above the claim's own ceiling, 4"},
      {[](Claim& c) { c.weight = 5, c.weight_ceiling = 4; }, "weight 5 is above the claim's own ceiling, 4"},
      {[](Claim& c) { c.group = "a\n"; }, "cannot be the name of a group"},
      {[](Claim& c) { c.group = std::string(kMaxGroupNameBytes + 1, 'a'); }, "cannot be the name of a group"},
      {[](Claim& c) { c.ttl_ns = 999 * policy::kNsPerMs; }, "cannot live for 999 ms"},
      {[](Claim& c) { c.labels["a b"] = "c"; }, "cannot be the name of a label"},
      {[](Claim& c) { c.labels["a"] = "\xff"; }, "has unprintable characters"},
      {[](Claim& c) { c.labels["a"] = std::string(kMaxLabelBytes, 'b'); }, "more than 1024"},
      {[](Claim& c) {
         for (std::size_t i = 0; i <= kMaxLabels; ++i)
           c.labels["l" + std::to_string(i)] = "";
       },
       "the claim has 17 labels, and may have 16"},
  };
  CHECK(Check(MakeClaim("a.B_1-2", "/a/b.slice/x\\x2d:y")));
  for (const Case& one : cases) {
    Claim claim = MakeClaim("a", "/a");
    one.spoil(claim);
    const auto checked = Check(claim);
    INFO(one.says);
    REQUIRE(!checked);
    CHECK(checked.error().what.find(one.says) != std::string::npos);
    CHECK(!checked.error().remedy.empty());
  }
}

TEST_CASE("a claim is named by its job or pod") {
  Claim claim = MakeClaim("c", "/a");
  CHECK(ClaimText(claim) == "claim \"c\"");
  claim.labels = {{"user", "alice"}};
  CHECK(LabelText(claim).empty());
  claim.labels = {{"pod", "web-1"}};
  CHECK(LabelText(claim) == "pod web-1");
  claim.labels["namespace"] = "ml";
  CHECK(LabelText(claim) == "pod ml/web-1");
  claim.labels["job"] = "17";
  CHECK(LabelText(claim) == "job 17");
  claim.labels["step"] = "0";
  CHECK(ClaimText(claim) == "claim \"c\" of job 17.0");
}

TEST_CASE("a process's cgroup is read from the kernel's whole line only") {
  const CgroupHierarchy unified{"/sys/fs/cgroup", ""}, systemd{"/sys/fs/cgroup/systemd", "name=systemd"};
  struct Case {
    const CgroupHierarchy& hierarchy;
    std::string text;
    std::optional<std::string> path;
  };
  const Case cases[] = {
      {unified, "0::/a/b\n", "/a/b"},
      {unified, "4:memory:/x\n0::/a\n", "/a"},
      {unified, "0::/\n", "/"},
      {unified, "0::/a:b\n", "/a:b"},
      {unified, "0::/a/b", std::nullopt},  // cut: "/a/b" may be another's
      {unified, "4:memory:/a\n", std::nullopt},
      {unified, "", std::nullopt},
      {unified, "10::/a\n", std::nullopt},
      {unified, "0::a\n", std::nullopt},
      {systemd, "9:name=systemd:/a\n0::/b\n", "/a"},
      {systemd, "5:devices:/x\n1:name=systemd:/a:name=systemd:/b\n", "/a:name=systemd:/b"},
      {systemd, "0::/b\n", std::nullopt},
      {systemd, "3:name=systemd2:/b\n", std::nullopt},
      {systemd, "2:cpu,name=systemd:/b\n", std::nullopt},
      {systemd, "0:name=systemd:/b\n", std::nullopt},
      {systemd, "9:name=systemd:/a", std::nullopt},
  };
  for (const Case& one : cases) {
    INFO(one.hierarchy.controllers << ": " << one.text);
    CHECK(CgroupIn(one.hierarchy, one.text) == one.path);
  }
  CHECK(CgroupDepth("/") == 0);
  CHECK(CgroupDepth("/a/b") == 2);
  const CgroupTable cgroups{{"/a", 1}, {"/a/b/c", 3}};
  CHECK(LineageOf("/a/b/c", InodesOf(cgroups)) == CgroupLineage{1, kUnknownInode, 3});
  CHECK(LineageOf("/", InodesOf(cgroups)).empty());
  CHECK(LineageOf("", InodesOf(cgroups)).empty());
}

TEST_CASE("of several hierarchies systemd's counts: engines make no cgroups in a unified hierarchy beside it") {
  struct Case {
    std::string mounts, root, controllers;
  };
  const std::string unified = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0\n";
  const std::string older =
      "tmpfs /sys/fs/cgroup tmpfs ro,mode=755 0 0\n"
      "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
      "cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n";
  const std::string beside = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
  const Case cases[] = {
      {unified, "/sys/fs/cgroup", ""},
      {"proc /proc proc rw 0 0\n" + unified + "cgroup2 /mnt/again cgroup2 rw 0 0\n", "/sys/fs/cgroup", ""},
      {older, "/sys/fs/cgroup/systemd", "name=systemd"},
      {beside + older, "/sys/fs/cgroup/systemd", "name=systemd"},
      {"cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n" + beside, "/sys/fs/cgroup/unified", ""},
      {"x /x cgroup rw,name=systemd2 0 0\nname=systemd /y tmpfs rw 0 0\n", "", ""},
      {"", "", ""},
      {"cgroup2\n\n  \n", "", ""},
  };
  for (const Case& one : cases) {
    INFO(one.mounts);
    const CgroupHierarchy found = HierarchyOf(one.mounts);
    CHECK(found.root == one.root);
    CHECK(found.controllers == one.controllers);
  }
}

TEST_CASE("a cgroup is a folder, not a link to one") {
  const test::Folder folder;
  const std::string root = folder.Path();
  REQUIRE(::mkdir((root + "/a").c_str(), 0755) == 0);
  REQUIRE(::symlink("a", (root + "/link").c_str()) == 0);
  const CgroupInodeOf inode_of = CgroupsAt(root);
  struct stat status {};
  REQUIRE(::stat((root + "/a").c_str(), &status) == 0);
  CHECK(inode_of("/a") == status.st_ino);
  CHECK(!inode_of("/link"));
  CHECK(!inode_of("/b"));
}

TEST_CASE("a process has the claim of its innermost cgroup that has one") {
  CgroupTable cgroups{{"/a", 1}, {"/a/b", 2}, {"/a/b/c", 3}, {"/ab", 4}};
  ClaimTable table;
  REQUIRE(table.Add(MakeClaim("outer", "/a"), InodesOf(cgroups), 0));
  REQUIRE(table.Add(MakeClaim("inner", "/a/b"), InodesOf(cgroups), 0));
  struct Case {
    std::string path;
    CgroupLineage lineage;
    std::string claim;  // empty: none
  };
  const Case cases[] = {
      {"/a", {1}, "outer"},
      {"/a/b", {1, 2}, "inner"},
      {"/a/b/c", {1, 2, 3}, "inner"},
      {"/a/other", {1, 9}, "outer"},
      {"/ab", {4}, ""},
      {"/a/b", {1, 9}, "outer"},    // made again: another cgroup, in the same outer one
      {"/a/b", {9, 2}, "inner"},    // only its own directory counts
      {"/a", {9}, ""},              // made again
      {"/a", {kUnknownInode}, ""},  // could not be read
      {"/a", {}, ""},               // the kernel's line was not read whole
      {"/a/b", {1}, ""},            // not of this path
      {"/", {}, ""},
      {"/a (deleted)", {1}, ""},
  };
  for (const Case& one : cases) {
    INFO(one.path);
    const ClaimPtr claim = table.Match(one.path, one.lineage);
    CHECK((claim == nullptr ? "" : claim->name) == one.claim);
  }
}

TEST_CASE("a claim ends with its cgroup or its time, and stays the same claim when it is put again") {
  CgroupTable cgroups{{"/a", 1}, {"/b", 2}};
  ClaimTable table;
  Claim claim = MakeClaim("c", "/a");
  claim.ttl_ns = 5 * policy::kNsPerS;
  const auto first = table.Add(claim, InodesOf(cgroups), 100);
  REQUIRE(first);
  CHECK((first->is_new && first->is_changed));
  CHECK(table.NextExpiryNs() == 100 + claim.ttl_ns);
  const auto again = table.Add(claim, InodesOf(cgroups), 200);
  CHECK((!again->is_new && !again->is_changed && again->claim->id == first->claim->id));
  CHECK(table.RemoveExpired(199 + claim.ttl_ns).empty());
  claim.priority = 3;
  CHECK(table.Add(claim, InodesOf(cgroups), 200, true)->is_changed);  // a dry run
  CHECK(!table.Find("c")->priority);
  CHECK(table.Add(claim, InodesOf(cgroups), 200)->is_changed);

  CHECK(table.Add(MakeClaim("other", "/a"), InodesOf(cgroups), 0).error().what == "cgroup /a has claim \"c\" already");
  CHECK(table.Add(MakeClaim("other", "/nothing"), InodesOf(cgroups), 0).error().what.find("there is no cgroup") == 0);
  cgroups["/a"] = kUnknownInode;
  CHECK(table.Add(claim, InodesOf(cgroups), 0).error().what == "the cgroup /a cannot be read");
  CHECK(table.RemoveGone(InodesOf(cgroups)).empty());
  cgroups["/a"] = 9;  // made again: free for another claim, before the table has noticed
  REQUIRE(table.Add(MakeClaim("other", "/a"), InodesOf(cgroups), 0));
  CHECK(table.Match("/a", {9})->name == "other");
  const auto gone = table.RemoveGone(InodesOf(cgroups));
  REQUIRE(gone.size() == 1);
  CHECK(gone[0]->name == "c");
  CHECK(table.Match("/a", {9})->name == "other");
  // To another cgroup under its name.
  REQUIRE(table.Add(MakeClaim("other", "/b"), InodesOf(cgroups), 0));
  CHECK(table.Match("/a", {9}) == nullptr);
  CHECK(table.Match("/b", {2})->name == "other");
  CHECK(table.RemoveExpired(~std::uint64_t{0}).empty());
  CHECK(table.NextExpiryNs() == 0);
  CHECK(table.Remove("other") != nullptr);
  CHECK(table.Remove("other") == nullptr);
  CHECK(table.Match("/b", {2}) == nullptr);
}

TEST_CASE("the number of claims is bounded, and existing ones can still be put again") {
  const CgroupInodeOf any = [](const std::string& path) { return std::optional<std::uint64_t>(path.size()); };
  ClaimTable table;
  for (std::size_t i = 0; i < kMaxClaims; ++i)
    REQUIRE(table.Add(MakeClaim("c" + std::to_string(i), "/c" + std::to_string(i)), any, 0));
  CHECK(table.Add(MakeClaim("more", "/more"), any, 0).error().what.find("as many as xschedd keeps") !=
        std::string::npos);
  CHECK(table.Add(MakeClaim("c0", "/c0"), any, 0));
}

TEST_CASE("the administrator's setting counts, else the claim's, the rule's, the owner's, the hint's") {
  Registry registry;
  NewClient fresh = ClientIn("/a", 1, 40);
  fresh.hints.weight = 400;
  fresh.hints.latency = Latency::kStrict;
  Client& client = registry.Add(std::move(fresh), 0);
  Config config;
  auto claim = std::make_shared<Claim>(MakeClaim("c", "/a"));
  client.claim = claim;
  // Each row removes the setting that decided in the row before.
  client.admin = 10;
  claim->priority = 20;
  config.rules.push_back({.uid = 0, .priority = 30});
  client.owner = 35;
  const std::pair<PrioritySource, int> rows[] = {{PrioritySource::kAdmin, 10}, {PrioritySource::kClaim, 20},
                                                 {PrioritySource::kRule, 30},  {PrioritySource::kOwner, 35},
                                                 {PrioritySource::kHint, 40},  {PrioritySource::kDefault, 0}};
  const std::function<void()> take[] = {[&] { client.admin.reset(); }, [&] { claim->priority.reset(); },
                                        [&] { config.rules.clear(); }, [&] { client.owner.reset(); },
                                        [&] { client.hint.reset(); },  [] {}};
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const Effective effective = EffectiveOf(client, config);
    CHECK(effective.source == rows[i].first);
    CHECK(effective.priority == rows[i].second);
    CHECK(effective.claim == client.claim);
    take[i]();
  }
  CHECK(EffectiveOf(client, config).weight == 400);
  claim->weight = 50;
  claim->latency = Latency::kAuto;
  CHECK(EffectiveOf(client, config).weight == 50);
  CHECK(EffectiveOf(client, config).weight_source == PrioritySource::kClaim);
  CHECK(EffectiveOf(client, config).latency == Latency::kAuto);
}

TEST_CASE("a claim's ceiling limits what ranks below the claim, a configured one everything") {
  struct Case {
    bool may_raise;
    std::optional<int> admin, claim, rule, hint, ceiling, configured;
    int gives;
    bool is_limited;
  };
  const auto none = std::nullopt;
  const Case cases[] = {
      // A user, and root in a container.
      {false, none, none, none, 50, none, none, 0, true},
      {false, none, none, none, 50, 30, none, 30, true},
      {true, none, none, none, 50, none, none, 50, false},
      {true, none, none, none, 50, 30, none, 30, true},
      {true, none, none, none, 20, 30, none, 20, false},
      {true, none, none, none, none, -5, none, -5, true},  // a client without a hint is limited, too
      {true, none, none, 60, none, 30, none, 30, true},
      {true, none, 60, none, none, none, none, 60, false},
      {true, none, 60, none, none, none, 10, 10, true},
      {true, 60, none, none, none, 30, none, 60, false},
      {true, 60, none, none, none, 30, 10, 10, true},
      {true, none, none, none, 50, 30, 10, 10, true},
      {true, none, none, none, 50, 10, 30, 10, true},
  };
  for (const Case& one : cases) {
    Registry registry;
    NewClient fresh = ClientIn("/a", 1, one.hint);
    fresh.identity.may_raise = one.may_raise;
    Client& client = registry.Add(std::move(fresh), 0);
    Config config;
    if (one.rule) config.rules.push_back({.uid = 0, .priority = one.rule});
    if (one.configured) config.ceilings[0].priority = one.configured;
    auto claim = std::make_shared<Claim>(MakeClaim("c", "/a"));
    claim->priority = one.claim;
    claim->ceiling = one.ceiling;
    client.claim = claim;
    client.admin = one.admin;
    client.effective = EffectiveOf(client, config);
    INFO(&one - cases);
    CHECK(client.effective.priority == one.gives);
    CHECK(client.effective.limited == one.is_limited);
    if (!one.is_limited) continue;
    const bool is_claims = !one.admin && !one.claim && one.ceiling && one.gives == *one.ceiling;
    const std::string said = PriorityCeilingText(client, client.effective, config);
    CHECK((said == "the ceiling of claim \"c\"") == is_claims);
  }
  const Claim sets = [] {
    Claim claim = MakeClaim("c", "/a");
    claim.priority = 5;
    claim.weight_ceiling = 300;
    return claim;
  }();
  Config config;
  config.ceilings[7].weight = 200;
  const OwnCeiling own = OwnCeilingOf(0, true, config);
  CHECK(WithClaim(own, sets, 0, config).priority == 5);
  CHECK(WithClaim(own, sets, 0, config).weight == 300);
  CHECK(WithClaim(own, sets, 7, config).weight == 200);
}

TEST_CASE("claims are restored after a restart, unless they have ended") {
  CgroupTable cgroups{{"/a", 1}, {"/b", 2}, {"/c", 3}, {"/d", 4}};
  ClaimTable before;
  Claim all = MakeClaim("all", "/a");
  all.priority = -5;
  all.ceiling = 7;
  all.weight = 30;
  all.weight_ceiling = 300;
  all.latency = Latency::kStrict;
  all.memory_limit = std::uint64_t{24} << 30;
  all.group = "g";
  all.labels = {{"job", "17"}, {"user", "alice"}};
  all.ttl_ns = 5 * policy::kNsPerS;
  all.has_socket = true;
  const ClaimPtr put = before.Add(all, InodesOf(cgroups), 100)->claim;
  CHECK(FromSaved(ToSaved(*put)) == *put);
  const ClaimPtr lasting = before.Add(MakeClaim("lasting", "/b"), InodesOf(cgroups), 100)->claim;
  const ClaimPtr again = before.Add(MakeClaim("again", "/c"), InodesOf(cgroups), 100)->claim;
  cgroups["/c"] = 9;
  cgroups.erase("/d");
  ClaimTable after;
  CHECK(after.Restore(FromSaved(ToSaved(*put)), InodesOf(cgroups), 200));
  CHECK(!after.Restore(*put, InodesOf(cgroups), 200));  // twice
  CHECK(after.Restore(*lasting, InodesOf(cgroups), 200));
  CHECK(!after.Restore(*again, InodesOf(cgroups), 200));
  CHECK(!ClaimTable().Restore(*put, InodesOf(cgroups), 100 + all.ttl_ns));
  Claim spoilt = *lasting;
  spoilt.name = "../x";
  CHECK(!ClaimTable().Restore(spoilt, InodesOf(cgroups), 200));
  CHECK(after.NextExpiryNs() == 100 + all.ttl_ns);
  cgroups["/d"] = 4;
  CHECK(after.Add(MakeClaim("next", "/d"), InodesOf(cgroups), 200)->claim->id > again->id);

  Claim largest = MakeClaim(std::string(kMaxClaimNameBytes, 'n'), "/" + std::string(kMaxClaimCgroupBytes - 1, 'c'));
  largest.id = largest.cgroup_inode = largest.expires_ns = ~std::uint64_t{0};
  largest.priority = largest.ceiling = -100;
  largest.weight = largest.weight_ceiling = 10'000;
  largest.latency = Latency::kStrict;
  largest.memory_limit = std::uint64_t{1} << 50;
  largest.has_socket = true;
  largest.group = std::string(kMaxGroupNameBytes, 'g');
  largest.ttl_ns = kMaxClaimTtlMs * policy::kNsPerMs;
  for (std::size_t i = 0; i < kMaxLabels; ++i)
    largest.labels["l" + std::to_string(10 + i)] = std::string(kMaxLabelBytes / kMaxLabels - 3, 'v');
  REQUIRE(Check(largest));
  state::SavedState saved;
  *saved.add_claims() = ToSaved(largest);
  ClaimAccount account;
  account.claim = std::make_shared<const Claim>(largest);
  for (const auto part : kUsageParts)
    account.usage.*part = ~std::uint64_t{0};
  account.began_unix_ms = account.ended_unix_ms = account.end_order = ~std::uint64_t{0};
  account.memory_peak_bytes = ~std::uint64_t{0};
  account.end_reason = std::string(kMaxEndReasonBytes, 'r');
  *saved.mutable_claims(0)->mutable_usage() = ToSaved(account);
  CHECK(saved.SerializeAsString().size() <= kMaxSavedClaimBytes);
  state::SavedState ended;
  *ended.add_ended_claims() = ToSavedEnded(account);
  CHECK(ended.SerializeAsString().size() <= kMaxSavedEndedClaimBytes);
  const std::optional<ClaimAccount> kept = FromSaved(ended.ended_claims(0));
  REQUIRE(kept);
  CHECK(kept->claim->labels == largest.labels);
  CHECK(kept->usage.launches == account.usage.launches);
  CHECK(kept->usage.memory_refused == account.usage.memory_refused);
  CHECK(kept->memory_peak_bytes == account.memory_peak_bytes);
  CHECK(kept->end_reason == account.end_reason);
}
