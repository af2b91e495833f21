#include "common/priority.h"

#include "common/runtime_dir.h"
#include "tests/catch.h"

using namespace xschedd;

TEST_CASE("priorities in range are read") {
  CHECK(ParsePriority("0") == 0);
  CHECK(ParsePriority("100") == 100);
  CHECK(ParsePriority("-100") == -100);
  CHECK(ParsePriority("+7") == 7);
}

TEST_CASE("anything else is refused, never clamped") {
  for (const char* text : {"", "+", "-", "+-5", "++5", " 5", "5 ", "0x10", "1.5", "101", "-101", "99999999999999999999",
                           "five", "5five"}) {
    INFO(text);
    const auto parsed = ParsePriority(text);
    REQUIRE(!parsed);
    CHECK(parsed.error().remedy == "give a number from -100 to 100");
  }
}

TEST_CASE("an explicit runtime folder overrides the default") {
  CHECK(RuntimeDir("/x") == "/x");
  CHECK(ClientSocketPath("/x") == "/x/client.sock");
  CHECK(ClientSocketPath(ClientFolder("/x")) == "/x/client/client.sock");
  CHECK(AdminSocketPath("/x") == "/x/admin.sock");
}
