// The exact text of metrics. For what other readers make of it see tests/integration/metrics.
#include "daemon/telemetry/exposition.h"

#include <limits>

#include "tests/catch.h"

using namespace xschedd;

namespace {

constexpr MetricFamily kCounter{"a_seconds", MetricType::kCounter, "seconds", "Say \"a\\b\"\nand more."};
constexpr MetricFamily kInfo{"a_build", MetricType::kInfo, "", "What."};
constexpr MetricFamily kGauge{"a_gauge", MetricType::kGauge, "", "Now."};
constexpr MetricFamily kTimes{"a_wait_seconds", MetricType::kHistogram, "seconds", "How long."};
constexpr std::uint64_t kBounds[] = {5'000, 2'500'000, 1'000'000'000};

}  // namespace

TEST_CASE("OpenMetrics") {
  Exposition out(MetricFormat::kOpenMetrics);
  out.Begin(kCounter);
  out.Seconds({{"x", "1"}, {"y", "2"}}, 1'500'000'000);
  out.Begin(kInfo);
  out.Sample({{"version", "0.1"}}, 1u);
  CHECK(out.Finish() ==
        "# TYPE a_seconds counter\n"
        "# UNIT a_seconds seconds\n"
        "# HELP a_seconds Say \\\"a\\\\b\\\"\\nand more.\n"
        "a_seconds_total{x=\"1\",y=\"2\"} 1.5\n"
        "# TYPE a_build info\n"
        "# HELP a_build What.\n"
        "a_build_info{version=\"0.1\"} 1\n"
        "# EOF\n");
}

TEST_CASE("the older Prometheus format") {
  Exposition out(MetricFormat::kPrometheus);
  out.Begin(kCounter);
  out.Seconds({}, 0);
  out.Begin(kInfo);
  out.Sample({{"version", "0.1"}}, 1u);
  CHECK(out.Finish() ==
        "# TYPE a_seconds_total counter\n"
        "# HELP a_seconds_total Say \"a\\\\b\"\\nand more.\n"
        "a_seconds_total 0\n"
        "# TYPE a_build_info gauge\n"
        "# HELP a_build_info What.\n"
        "a_build_info{version=\"0.1\"} 1\n");
}

TEST_CASE("a label is escaped and cannot break out of its value") {
  Exposition out(MetricFormat::kOpenMetrics);
  out.Begin(kGauge);
  out.Sample({{"name", "a\"} 1\nevil{b=\"\\"}}, 2u);
  CHECK(out.Finish() ==
        "# TYPE a_gauge gauge\n# HELP a_gauge Now.\na_gauge{name=\"a\\\"} 1\\nevil{b=\\\"\\\\\"} 2\n# EOF\n");
}

TEST_CASE("numbers") {
  Exposition out(MetricFormat::kOpenMetrics);
  out.Begin(kGauge);
  out.Sample({}, std::numeric_limits<std::uint64_t>::max());
  out.Sample({}, 0.25);
  out.Sample({}, std::numeric_limits<double>::infinity());
  out.Sample({}, -std::numeric_limits<double>::infinity());
  out.Sample({}, std::numeric_limits<double>::quiet_NaN());
  out.Seconds({}, 1);
  out.Seconds({}, 60'000'000'000);
  const std::string text = out.Finish();
  CHECK(text.substr(text.find("Now.\n") + 5) ==
        "a_gauge 18446744073709551615\na_gauge 0.25\na_gauge +Inf\na_gauge -Inf\na_gauge NaN\n"
        "a_gauge 0.000000001\na_gauge 60\n# EOF\n");
}

TEST_CASE("histogram counts are cumulative, and a bound includes its own value") {
  TimeHistogram times(kBounds);
  for (const std::uint64_t ns : {1ull, 5'000ull, 5'001ull, 2'500'000ull, 2'000'000'000ull})
    times.Observe(ns);
  TimeHistogram more(kBounds);
  more.Observe(4'000);
  times.Add(more);
  Exposition out(MetricFormat::kOpenMetrics);
  out.Begin(kTimes);
  out.Histogram({{"x", "1"}}, times);
  const std::string text = out.Finish();
  CHECK(text.substr(text.find("long.\n") + 6) ==
        "a_wait_seconds_bucket{x=\"1\",le=\"5e-06\"} 3\n"
        "a_wait_seconds_bucket{x=\"1\",le=\"0.0025\"} 5\n"
        "a_wait_seconds_bucket{x=\"1\",le=\"1.0\"} 5\n"
        "a_wait_seconds_bucket{x=\"1\",le=\"+Inf\"} 6\n"
        "a_wait_seconds_count{x=\"1\"} 6\n"
        "a_wait_seconds_sum{x=\"1\"} 2.002514002\n"
        "# EOF\n");
}

TEST_CASE("bounds are written as Go writes them") {
  CHECK(BoundText(5'000) == "5e-06");
  CHECK(BoundText(50'000) == "5e-05");
  CHECK(BoundText(100'000) == "0.0001");
  CHECK(BoundText(250'000'000) == "0.25");
  CHECK(BoundText(30'000'000'000) == "30.0");
}
