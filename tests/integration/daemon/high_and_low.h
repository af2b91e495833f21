// Two clients of the real daemon on one device, of priority 50 and 0, both tracked. Thread rule: the test's thread.
#pragma once

#include <string>

#include "tests/catch.h"
#include "tests/integration/daemon/admin_calls.h"
#include "tests/integration/daemon/daemon_process.h"
#include "tests/integration/daemon/fake_shim.h"

namespace xschedd::test {

struct HighAndLow {
  explicit HighAndLow(const std::string& folder) : high(folder, 50), low(folder, 0) {
    high.Attach(0, kGpu);
    low.Attach(0, kGpu);
    REQUIRE(Eventually([this] { return high.IsTracked(0) && low.IsTracked(0); }));
  }
  FakeShim high;
  FakeShim low;
};

}  // namespace xschedd::test
