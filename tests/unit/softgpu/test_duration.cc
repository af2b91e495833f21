// Occupancy, the cost model, the table of durations, and jitter.
#include <cmath>

#include "tests/catch.h"
#include "tools/softgpu/model/duration.h"

using namespace softgpu;

TEST_CASE("a kernel holds as many compute units as its workgroups need") {
  CHECK(occupancy({.workgroups = 1, .workgroup_size = 64, .group_segment_size = 0}) == 32);
  CHECK(occupancy({.workgroups = 1, .workgroup_size = 1024, .group_segment_size = 0}) == 2);
  CHECK(occupancy({.workgroups = 1, .workgroup_size = 64, .group_segment_size = 65'536}) == 1);
  CHECK(compute_units_needed({.workgroups = 1, .workgroup_size = 64, .group_segment_size = 0}, 80) == 1);
  CHECK(compute_units_needed({.workgroups = 33, .workgroup_size = 64, .group_segment_size = 0}, 80) == 2);
  CHECK(compute_units_needed({.workgroups = 1'000'000, .workgroup_size = 64, .group_segment_size = 0}, 80) == 80);
  CHECK(compute_units_needed({.workgroups = 1'000'000, .workgroup_size = 64, .group_segment_size = 0}, 8) == 8);
  CHECK(compute_units_needed({.workgroups = 0, .workgroup_size = 0, .group_segment_size = 0}, 0) == 1);
}

TEST_CASE("larger grids and fewer units take longer in the cost model") {
  const DispatchShape small{.workgroups = 10, .workgroup_size = 256, .group_segment_size = 0};
  const DispatchShape large{.workgroups = 100'000, .workgroup_size = 256, .group_segment_size = 0};
  CHECK(modelled_duration_ns(large, 80) > modelled_duration_ns(small, 80));
  CHECK(modelled_duration_ns(large, 40) > modelled_duration_ns(large, 80));
}

TEST_CASE("copies take time by bytes and path") {
  CHECK(copy_duration_ns(CopyPath::kHostToDevice, 1u << 30) > copy_duration_ns(CopyPath::kHostToDevice, 1u << 20));
  CHECK(copy_duration_ns(CopyPath::kDeviceToDevice, 1u << 30) < copy_duration_ns(CopyPath::kPeer, 1u << 30));
}

TEST_CASE("the table of durations takes names, globs and comments, and the first match counts") {
  DurationTable table;
  REQUIRE(table.parse("# comment\n\nexact 12.5\n_Z4gemm* 100 # trailing\n_Z4gemmX 7\n", "t").empty());
  CHECK(table.duration_ns("exact") == 12'500u);
  CHECK(table.duration_ns("_Z4gemmX") == 100'000u);
  CHECK_FALSE(table.duration_ns("other").has_value());
}

TEST_CASE("a line of the table that cannot be read is named") {
  for (const char* bad : {"name\n", "name x\n", "name -1\n", "name 1 2\n", "name nan\n"}) {
    DurationTable table;
    const std::string error = table.parse(std::string("good 1\n") + bad, "file");
    CHECK(error.find("file:2:") == 0);
  }
  DurationTable table;
  CHECK(table.load("/nonexistent/durations").find("/nonexistent/durations") == 0);
}

TEST_CASE("jitter is deterministic, bounded, and differs between dispatches, queues and seeds") {
  CHECK(jitter_factor(1, 2, 3, 0) == 1.0);
  CHECK(jitter_factor(1, 2, 3, 10) == jitter_factor(1, 2, 3, 10));
  CHECK(jitter_factor(1, 2, 3, 10) != jitter_factor(1, 2, 4, 10));
  CHECK(jitter_factor(1, 2, 3, 10) != jitter_factor(1, 3, 3, 10));
  CHECK(jitter_factor(1, 2, 3, 10) != jitter_factor(2, 2, 3, 10));
  double sum = 0;
  for (uint64_t i = 0; i < 1'000; ++i) {
    const double f = jitter_factor(5, 0, i, 20);
    REQUIRE((f >= 0.8 && f <= 1.2));
    sum += f;
  }
  CHECK(std::abs(sum / 1000 - 1.0) < 0.02);
}
