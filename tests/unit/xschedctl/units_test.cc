#include "tools/xschedctl/units.h"

#include <stdlib.h>
#include <time.h>

#include "daemon/config/duration.h"
#include "tests/catch.h"

namespace xschedd::ctl {

TEST_CASE("durations have three digits and a unit") {
  CHECK(Duration(0) == "0 s");
  CHECK(Duration(999) == "999 ns");
  CHECK(Duration(1000) == "1.00 us");
  CHECK(Duration(12'345) == "12.3 us");
  CHECK(Duration(999'499) == "999 us");
  CHECK(Duration(999'501) == "1.00 ms");
  CHECK(Duration(25'000'000) == "25.0 ms");
  CHECK(Duration(59'940'000'000) == "59.9 s");
  CHECK(Duration(59'960'000'000) == "1 min 00 s");
  CHECK(Duration(7'500'000'000'000) == "2 h 05 min");
}

TEST_CASE("bytes are written with three digits and the largest unit that fits") {}

TEST_CASE("a share of zero is not a number") {
  CHECK(Share(0, 0) == "-");
  CHECK(Share(1, 4) == "25.0 %");
}

TEST_CASE("clock times are local and have milliseconds") {
  setenv("TZ", "UTC", 1);
  tzset();
  CHECK(ClockTime(1'000'000'000'007) == "01:46:40.007");
}

TEST_CASE("a duration is read with its unit") {
  CHECK(ParseMicroseconds("500us").value() == 500);
  CHECK(ParseMicroseconds(" 1.5 ms ").value() == 1500);
  CHECK(ParseMicroseconds("2s").value() == 2'000'000);
  CHECK(ParseMicroseconds("0").value() == 0);
  CHECK(ParseMilliseconds("25ms").value() == 25);
  CHECK(ParseMilliseconds("0.3s").value() == 300);
  CHECK(ParseSeconds("1.5min").value() == 90);
  CHECK(ParseSeconds("2h").value() == 7200);
}

TEST_CASE("an invalid duration is an error that says how to write one") {
  for (const char* text : {"", "25", "ms", "-1ms", "5 m", "1e3ms", "nan", "nanms", "infs", "25msx"}) {
    CAPTURE(text);
    const auto value = ParseMicroseconds(text);
    REQUIRE_FALSE(value.has_value());
    CHECK(value.error().remedy.find("25ms") != std::string::npos);
  }
  CHECK_FALSE(ParseMicroseconds("9999s").has_value());
  CHECK_FALSE(ParseMicroseconds("0.5us").has_value());
  CHECK_FALSE(ParseMilliseconds("500us").has_value());
  CHECK_FALSE(ParseSeconds("1.5s").has_value());
}

TEST_CASE("a number consists of digits only") {
  CHECK(ParseNumber("4711", "pid", 9999).value() == 4711);
  for (const char* text : {"", "-1", "+1", "1 ", " 1", "0x10", "10000", "99999999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseNumber(text, "pid", 9999).has_value());
  }
}

}  // namespace xschedd::ctl
