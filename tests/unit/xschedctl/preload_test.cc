#include "tools/xschedctl/preload.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"

namespace xschedd::ctl {

TEST_CASE("the shim goes in front of other preloaded libraries") {
  CHECK(ComposePreload("/lib/shim.so", "").value() == "/lib/shim.so");
  CHECK(ComposePreload("/lib/shim.so", "/lib/a.so b.so").value() == "/lib/shim.so:/lib/a.so b.so");
}

TEST_CASE("the shim is named once") {
  CHECK(ComposePreload("/lib/shim.so", "/lib/shim.so").value() == "/lib/shim.so");
  CHECK(ComposePreload("/lib/shim.so", "a.so /lib/shim.so:b.so").value() == "a.so /lib/shim.so:b.so");
  CHECK(ComposePreload("/lib/shim.so", "/lib/shim.so.old").value() == "/lib/shim.so:/lib/shim.so.old");
}

TEST_CASE("a path that LD_PRELOAD cannot carry is an error") {
  CHECK_FALSE(ComposePreload("/my libs/shim.so", "").has_value());
  CHECK_FALSE(ComposePreload("/a:b/shim.so", "").has_value());
}

TEST_CASE("the build tree's shim is preferred to the installed one") {
  const auto candidates = ShimCandidates("/src/build/tools/xschedctl/xschedctl", "/usr/lib64");
  CHECK(candidates == std::vector<std::string>{"/src/build/client-shim/libxschedd-shim.so",
                                               "/src/build/tools/lib/xschedd/libxschedd-shim.so",
                                               "/usr/lib64/xschedd/libxschedd-shim.so",
                                               "/usr/lib64/libxschedd-shim.so"});
}

TEST_CASE("only a shim that exists is found") {
  char folder[] = "/tmp/xschedctl-test-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string there = std::string(folder) + "/there.so";
  std::ofstream(there) << "x";
  CHECK(FindShim("", {"/nowhere/a.so", there}).value() == there);
  CHECK(FindShim(there, {}).value() == there);
  // A library requested by name is never replaced by another.
  CHECK_FALSE(FindShim("/nowhere/a.so", {there}).has_value());
  const auto none = FindShim("", {"/nowhere/a.so", "/nowhere/b.so"});
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().what.find("/nowhere/b.so") != std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace xschedd::ctl
