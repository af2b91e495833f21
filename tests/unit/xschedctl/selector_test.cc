#include "tools/xschedctl/selector.h"

#include "tests/catch.h"

namespace xschedd::ctl {

TEST_CASE("no selector means all clients for ps, and is an error for changes") {
  CHECK(ParseSelector({}, WhenEmpty::kMeansAll).value().all());
  const auto refused = ParseSelector({}, WhenEmpty::kIsError);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().remedy.find("--all") != std::string::npos);
}

TEST_CASE("only what was given is set") {
  SelectorOptions options;
  options.pids = {"12", "13"};
  const v1::Selector selector = ParseSelector(options, WhenEmpty::kIsError).value();
  REQUIRE(selector.pid_size() == 2);
  CHECK(selector.pid(1) == 13);
  CHECK_FALSE(selector.has_uid());
  CHECK_FALSE(selector.has_group());
  CHECK_FALSE(selector.has_cgroup());
  CHECK_FALSE(selector.has_exe());
  CHECK_FALSE(selector.all());
}

TEST_CASE("users are given by name or number") {
  SelectorOptions options;
  options.uid = "root";
  CHECK(ParseSelector(options, WhenEmpty::kIsError).value().uid() == 0);
  options.uid = "1000";
  CHECK(ParseSelector(options, WhenEmpty::kIsError).value().uid() == 1000);
  for (const char* text : {"no-such-user-here", "4294967295", "12x"}) {
    CAPTURE(text);
    options.uid = text;
    CHECK_FALSE(ParseSelector(options, WhenEmpty::kIsError).has_value());
  }
}

TEST_CASE("--all beside another selector is a mistake, not a choice") {
  SelectorOptions options;
  options.all = true;
  CHECK(ParseSelector(options, WhenEmpty::kIsError).value().all());
  options.group = "ranks";
  CHECK_FALSE(ParseSelector(options, WhenEmpty::kIsError).has_value());
}

TEST_CASE("a pid is a positive 31-bit number") {
  for (const char* text : {"-1", "self", "2147483648", ""}) {
    CAPTURE(text);
    SelectorOptions options;
    options.pids = {text};
    CHECK_FALSE(ParseSelector(options, WhenEmpty::kIsError).has_value());
  }
}

}  // namespace xschedd::ctl
