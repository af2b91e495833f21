#include "daemon/registry/same_program.h"

#include "tests/catch.h"

using namespace xschedd;

namespace {

struct Process {
  ClientIdentity identity;
  PrincipalPtr principal;
  ClaimPtr claim;
};

Process Make(const std::string& command, Principal principal = {1000}, ClaimLabels labels = {}) {
  Process process;
  process.identity.exe = "/usr/bin/python3";
  process.identity.command = command;
  process.principal = std::make_shared<const Principal>(std::move(principal));
  if (!labels.empty()) {
    Claim claim;
    claim.labels = std::move(labels);
    process.claim = std::make_shared<const Claim>(std::move(claim));
  }
  return process;
}

}  // namespace

TEST_CASE("which clients are processes of one program") {
  const Principal in_pod{0, "pod a"};
  const Principal in_next_pod{0, "pod b"};
  const struct {
    const char* name;
    Process one;
    Process other;
    bool same;
  } cases[] = {
      {"one command of one user", Make("serve"), Make("serve"), true},
      {"another command", Make("serve"), Make("train"), false},
      {"unknown commands", Make(""), Make(""), false},
      {"of another user", Make("serve"), Make("serve", {1001}), false},
      {"in another place", Make("serve"), Make("serve", {1000, "container"}), false},
      {"in another pod", Make("serve", in_pod), Make("serve", in_next_pod), false},
      {"in pods of one namespace", Make("serve", in_pod, {{"namespace", "ml"}, {"pod", "a"}}),
       Make("serve", in_next_pod, {{"namespace", "ml"}, {"pod", "b"}}), true},
      {"in pods of two namespaces", Make("serve", in_pod, {{"namespace", "ml"}}),
       Make("serve", in_next_pod, {{"namespace", "web"}}), false},
      {"in two jobs of one user", Make("serve", {1000, "job 1"}, {{"job", "1"}, {"user", "ada"}}),
       Make("serve", {1000, "job 2"}, {{"job", "2"}, {"user", "ada"}}), true},
      {"in a claim and in none", Make("serve", in_pod, {{"namespace", "ml"}}), Make("serve", in_next_pod), false},
      {"in claims that say nothing", Make("serve", in_pod, {{"x", "y"}}), Make("serve", in_next_pod, {{"x", "y"}}),
       false},
  };
  for (const auto& row : cases) {
    INFO(row.name);
    const Program one{row.one.identity, row.one.principal, row.one.claim};
    const Program other{row.other.identity, row.other.principal, row.other.claim};
    CHECK(IsSame(one, other) == row.same);
    CHECK(IsSame(other, one) == row.same);
  }
  Process elsewhere = Make("serve");
  elsewhere.identity.exe = "/opt/python3";
  const Process usual = Make("serve");
  CHECK_FALSE(IsSame({usual.identity, usual.principal, usual.claim},
                     {elsewhere.identity, elsewhere.principal, elsewhere.claim}));
}
