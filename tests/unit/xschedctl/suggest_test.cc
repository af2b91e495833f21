#include "tools/xschedctl/suggest.h"

#include "tests/catch.h"

namespace xschedd::ctl {

TEST_CASE("a mistyped word gets the nearest known one") {
  const std::vector<std::string> known = {"ps",     "top",     "set",    "hold",  "release",
                                          "policy", "explain", "reload", "doctor"};
  CHECK(Nearest("pss", known) == "ps");
  CHECK(Nearest("tpo", known) == "top");
  CHECK(Nearest("realese", known) == "release");
  CHECK(Nearest("polcy", known) == "policy");
  CHECK(Nearest("expl", known) == "explain");
  CHECK(Nearest("doctro", known) == "doctor");
}

TEST_CASE("a word unlike all known ones gets no suggestion") {
  const std::vector<std::string> known = {"ps", "release", "policy"};
  CHECK(Nearest("zebra", known).empty());
  CHECK(Nearest("x", known).empty());
  CHECK(Nearest("", known).empty());
  CHECK(Nearest(std::string(10'000, 'p'), known).empty());
}

}  // namespace xschedd::ctl
