// What is reported about a device; each state is reported once.
#include <utility>
#include <vector>

#include "client-shim/core/device_reports.h"
#include "tests/catch.h"
#include "tests/unit/shim/tracker_fixture.h"

using namespace xschedd::shim;

namespace {

struct Reporting {
  Sink sink;
  DeviceReports reports;

  Reporting() {
    sink.wants_waits = true;
    reports.Begin(&sink);
  }
  void SetWaits(bool waits) {
    reports.SetWaits(waits, [this] { reports.AddLaunched(); });
  }
  std::vector<xschedd::abi::TransitionKind> Take() { return std::exchange(sink.reports, {}); }
};

}  // namespace

TEST_CASE_METHOD(Reporting, "what is busy is reported as waiting, and back, when that changes", "[reports]") {
  SetWaits(true);  // nobody is busy
  CHECK(Take().empty());
  reports.SetBusy();
  SetWaits(true);
  SetWaits(true);
  CHECK(Take() == std::vector{kBusy, kWaits});
  CHECK(sink.submitted == 1);  // counted once, for the report
  sink.wants_waits = false;    // the daemon asks for it no more
  SetWaits(true);
  CHECK(Take() == std::vector{kBusy});
  sink.wants_waits = true;
  SetWaits(true);
  reports.SetIdle();
  CHECK(Take() == std::vector{kWaits, kIdle});
  CHECK_FALSE(reports.IsBusy());
  reports.SetBusy();  // and waits no more
  CHECK(Take() == std::vector{kBusy});
}

TEST_CASE_METHOD(Reporting, "a deadline goes with each report, and a change of it is one while there is work",
                 "[reports]") {
  reports.SetDeadline(500, false);
  CHECK(Take().empty());
  CHECK(reports.HasDeadline());
  reports.SetBusy();
  CHECK(sink.deadlines.back() == 500);
  reports.SetDeadline(500, true);
  CHECK(Take() == std::vector{kBusy});
  reports.SetDeadline(400, true);
  CHECK(Take() == std::vector{kBusy});
  CHECK(sink.deadlines.back() == 400);
  reports.SetDeadline(0, false);
  CHECK(Take().empty());
  CHECK_FALSE(reports.HasDeadline());
}

TEST_CASE_METHOD(Reporting, "the counters are the ledger's", "[reports]") {
  reports.AddLaunched();
  reports.AddLaunched();
  CHECK(sink.submitted == 2);
  CHECK(sink.in_flight == 2);
  CHECK(sink.completed == 0);
  reports.AddFinished();
  reports.AddSettled(2);
  CHECK(reports.Launched() == 0);
  CHECK(reports.Submitted() == 3);
  reports.Publish(77);
  CHECK(sink.submitted == 3);
  CHECK(sink.completed == 3);
  CHECK(sink.in_flight == 0);
  CHECK(sink.gpu_time_ns == 77);
  reports.PublishLimit(9);
  CHECK(sink.limit == 9);
}

TEST_CASE_METHOD(Reporting, "the end of a session is idle, another session begins at nothing", "[reports]") {
  reports.SetBusy();
  reports.SetDeadline(500, true);
  reports.AddLaunched();
  Take();
  Sink next;
  SECTION("another session") {
    reports.Begin(&next);
    CHECK(Take().empty());  // that one is over
  }
  SECTION("none, then another") {
    reports.Begin(nullptr);
    CHECK(Take() == std::vector{kIdle});
    reports.SetBusy();
    reports.AddLaunched();  // for nobody
    reports.SetIdle();
    reports.Begin(&next);
    CHECK(Take().empty());
  }
  CHECK_FALSE(reports.IsBusy());
  CHECK_FALSE(reports.HasDeadline());
  reports.AddLaunched();
  CHECK(next.submitted == 1);
  CHECK(next.in_flight == 1);
  CHECK(sink.submitted == 1);
}
