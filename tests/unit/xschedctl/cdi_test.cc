// The CDI specification for container engines.
#include "tools/xschedctl/cdi.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"

using namespace xschedd::ctl;

TEST_CASE("a container gets the folder of the clients' socket, the shim at its path on the host, and one variable") {
  const auto text = CdiSpecification("/usr/lib/xschedd/libxschedd-shim.so", "/run/xschedd");
  REQUIRE(text);
  const nlohmann::json specification = nlohmann::json::parse(*text);
  CHECK(specification["cdiVersion"] == "0.5.0");
  CHECK(specification["kind"] == "xschedd.io/client");
  REQUIRE(specification["devices"].size() == 1);
  const nlohmann::json& device = specification["devices"][0];
  CHECK(device["name"] == "any");
  const nlohmann::json& edits = device["containerEdits"];
  CHECK(edits.size() == 2);
  CHECK(edits["env"] == nlohmann::json::array({"LD_PRELOAD=/usr/lib/xschedd/libxschedd-shim.so"}));
  REQUIRE(edits["mounts"].size() == 2);
  // Never the runtime folder itself: admin.sock is in it.
  CHECK(edits["mounts"][0]["hostPath"] == "/run/xschedd/client");
  CHECK(edits["mounts"][0]["containerPath"] == "/run/xschedd");
  CHECK(edits["mounts"][1]["hostPath"] == "/usr/lib/xschedd");
  CHECK(edits["mounts"][1]["containerPath"] == "/usr/lib/xschedd");
  for (const nlohmann::json& mount : edits["mounts"]) {
    CHECK(mount["options"] == nlohmann::json::array({"ro", "nosuid", "nodev", "bind"}));
  }
}

TEST_CASE("a daemon with another folder, and a shim that cannot be preloaded") {
  const auto text = CdiSpecification("/opt/x/libxschedd-shim.so", "/srv/gpu");
  REQUIRE(text);
  const nlohmann::json specification = nlohmann::json::parse(*text);
  CHECK(specification["devices"][0]["containerEdits"]["mounts"][0]["hostPath"] == "/srv/gpu/client");
  CHECK(specification["devices"][0]["containerEdits"]["mounts"][0]["containerPath"] == "/run/xschedd");
  CHECK(!CdiSpecification("/opt/my shim/libxschedd-shim.so", "/run/xschedd"));
}
