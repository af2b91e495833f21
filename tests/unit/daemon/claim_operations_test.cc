// The calls about claims, as the Admin service makes them: who may, what is refused, what is answered. How clients
// follow claims is tested in claim_clients_test.cc.
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "daemon/admin/admin_operations.h"
#include "tests/catch.h"
#include "tests/unit/daemon/claims.h"
#include "tests/unit/daemon/services.h"

using namespace xschedd;

namespace {

struct OperationsWorld : test::Services {
  OperationsWorld() : Services(test::SmallQuota(), [](const Connection&) {}) {
    core.SetCgroups(test::InodesOf(cgroups));
  }
  ~OperationsWorld() { core.Stop(); }

  grpc::Status Put(const v1::Claim& claim, const Actor& by = {}, bool is_dry_run = false) {
    v1::PutClaimRequest request;
    *request.mutable_claim() = claim;
    request.set_dry_run(is_dry_run);
    put.Clear();
    return operations.PutClaim(by, request, put);
  }
  grpc::Status Delete(const std::string& name, const Actor& by = {}, bool is_dry_run = false) {
    v1::DeleteClaimRequest request;
    request.set_name(name);
    request.set_dry_run(is_dry_run);
    deleted.Clear();
    return operations.DeleteClaim(by, request, deleted);
  }
  grpc::Status List(const std::string& name = "") {
    v1::ListClaimsRequest request;
    request.set_name(name);
    listed.Clear();
    return operations.ListClaims({}, request, listed);
  }

  test::CgroupTable cgroups{{"/a", 1}, {"/b", 2}};
  AdminOperations operations{core, connections, quotas};
  v1::PutClaimResponse put;
  v1::DeleteClaimResponse deleted;
  v1::ListClaimsResponse listed;
};

v1::Claim Named(const std::string& name, const std::string& cgroup) {
  v1::Claim claim;
  claim.set_name(name);
  claim.set_cgroup(cgroup);
  return claim;
}

}  // namespace

TEST_CASE("only root puts and deletes claims; members of group xschedd and users do not") {
  OperationsWorld world;
  const Actor root;
  const Actor member{.pid = 7, .uid = 4711};
  const Actor user{.pid = 8, .uid = 4711, .is_admin = false};
  REQUIRE(world.Put(Named("job", "/a"), root).ok());
  for (const Actor& by : {member, user}) {
    CHECK(world.Put(Named("own", "/b"), by).error_code() == grpc::StatusCode::PERMISSION_DENIED);
    const grpc::Status refused = world.Delete("job", by);
    CHECK(refused.error_code() == grpc::StatusCode::PERMISSION_DENIED);
    CHECK(refused.error_message().starts_with("only root may put and delete claims, and uid 4711 is not root; run "));
  }
  // The daemon's own user is root to it.
  CHECK(world.Put(Named("own", "/b"), Actor{.uid = ::geteuid()}).ok());
  CHECK(world.core.Claims().All().size() == 2);
}

TEST_CASE("a claim is listed with all that was put, and with its clients") {
  OperationsWorld world;
  v1::Claim claim = Named("job", "/a");
  claim.set_priority(5);
  claim.set_ceiling(6);
  claim.set_weight(70);
  claim.set_weight_ceiling(80);
  claim.set_memory_limit(1 << 30);
  claim.set_latency("strict");
  claim.set_ttl_ms(60'000);
  (*claim.mutable_labels())["user"] = "alice";
  const std::uint64_t before = MonotonicNs();
  REQUIRE(world.Put(claim).ok());
  CHECK(world.put.is_new());
  CHECK(world.put.applied_ns() >= before);
  REQUIRE(world.Put(Named("other", "/b")).ok());
  world.core.AddClient(test::ClientIn("/a", 1));
  world.core.AddClient(test::ClientIn("/a", 2));

  REQUIRE(world.List("job").ok());
  REQUIRE(world.listed.claims_size() == 1);
  const v1::Claim& job = world.listed.claims(0);
  CHECK(job.weight_ceiling() == 80);
  CHECK(job.latency() == "strict");
  CHECK(job.labels().at("user") == "alice");
  CHECK(job.clients() == 2);
  REQUIRE(world.List().ok());
  CHECK(world.listed.claims_size() == 2);
  CHECK(world.List("joc").error_message().starts_with("there is no claim \"joc\"; "));

  CHECK(world.Delete("job", {}, true).ok());
  CHECK(world.deleted.claim().clients() == 2);
  CHECK(world.core.Claims().Find("job") != nullptr);
  CHECK(world.Delete("job").ok());
  CHECK(world.Delete("job").error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(world.core.Claims().Find("job") == nullptr);
}

TEST_CASE("a claim that cannot be kept is refused with the reason, and changes nothing") {
  OperationsWorld world;
  const auto refused = [&](const v1::Claim& claim) {
    const grpc::Status status = world.Put(claim);
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  v1::Claim claim = Named("job", "/a");
  claim.set_ttl_ms(kMaxClaimTtlMs + 1);
  CHECK(refused(claim).starts_with("a claim cannot live for 31622400001 ms; give "));
  claim.set_ttl_ms(0);
  claim.set_latency("sometimes");
  CHECK(refused(claim).find("sometimes") != std::string::npos);
  claim.clear_latency();
  claim.set_cgroup("/nowhere");
  CHECK(refused(claim).find("/nowhere") != std::string::npos);
  CHECK(world.core.Claims().All().empty());
  claim.set_cgroup("/a");
  CHECK(world.Put(claim, {}, true).ok());
  CHECK(world.put.applied_ns() == 0);
  CHECK(world.core.Claims().All().empty());
}

TEST_CASE("when there are as many claims as xschedd keeps, those that exist can still be changed") {
  OperationsWorld world;
  const auto numbered = [&](std::size_t number) {
    const std::string cgroup = "/many/" + std::to_string(number);
    world.cgroups[cgroup] = 100 + number;
    return Named("job-" + std::to_string(number), cgroup);
  };
  for (std::size_t i = 0; i < kMaxClaims; ++i)
    REQUIRE(world.Put(numbered(i)).ok());
  const grpc::Status full = world.Put(numbered(kMaxClaims));
  CHECK(full.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(full.error_message().starts_with("there are 1024 claims, as many as xschedd keeps; "));
  v1::Claim again = numbered(3);
  again.set_priority(9);
  REQUIRE(world.Put(again).ok());
  CHECK_FALSE(world.put.is_new());
  CHECK(world.put.claim().priority() == 9);
}
