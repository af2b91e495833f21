// Waiting for the end of a descriptor, without false alarms.
#include "daemon/connections/await_end.h"

#include <memory>

#include "tests/catch.h"
#include "tests/unit/daemon/loop.h"

using namespace xschedd;
using test::Pair;
using test::RunAWhile;
using test::RunUntil;
using test::Say;
using Descriptor = boost::asio::posix::stream_descriptor;

namespace {

struct Awaited {
  explicit Awaited(Descriptor::wait_type type = Descriptor::wait_read)
      : descriptor(std::make_shared<Descriptor>(io, pair.ours.Release())) {
    AwaitEnd(*descriptor, type, descriptor, [this](const boost::system::error_code& error) {
      ++reports;
      failed = static_cast<bool>(error);
    });
  }
  bool IsReported() {
    return RunUntil(io, [this] { return reports != 0; });
  }

  boost::asio::io_context io;
  Pair pair;
  std::shared_ptr<Descriptor> descriptor;
  int reports = 0;
  bool failed = false;
};

}  // namespace

TEST_CASE("an end is reported once") {
  Awaited awaited;
  RunAWhile(awaited.io);
  CHECK(awaited.reports == 0);
  awaited.pair.peers.Reset();
  REQUIRE(awaited.IsReported());
  CHECK_FALSE(awaited.failed);
  RunAWhile(awaited.io);
  CHECK(awaited.reports == 1);
}

TEST_CASE("readable data is not reported as an end") {
  Awaited awaited(Descriptor::wait_error);
  Say(awaited.pair.peers, "x");
  RunAWhile(awaited.io);
  CHECK(awaited.reports == 0);
  awaited.pair.peers.Reset();
  REQUIRE(awaited.IsReported());
  CHECK_FALSE(awaited.failed);
}

TEST_CASE("data that was read meanwhile is not reported as an end") {
  Awaited awaited;
  int taken = 0;
  // Another reader takes each byte between the wake-up and the report.
  for (int i = 0; i < 20; ++i) {
    Say(awaited.pair.peers, "x");
    test::RunWith(awaited.io, [&] {
      char byte;
      taken += ::read(awaited.descriptor->native_handle(), &byte, 1) == 1 ? 1 : 0;
    });
  }
  CHECK(taken == 20);
  CHECK(awaited.reports == 0);
  awaited.pair.peers.Reset();
  CHECK(awaited.IsReported());
  CHECK_FALSE(awaited.failed);
}

TEST_CASE("closing the descriptor is an error, and nothing is reported once its owner is gone") {
  Awaited awaited;
  RunAWhile(awaited.io);
  SECTION("closed") {
    CloseForGood(*awaited.descriptor);
    CloseForGood(*awaited.descriptor);  // again: nothing
    REQUIRE(awaited.IsReported());
    CHECK(awaited.failed);
    CHECK(test::IsClosed(awaited.pair.peers));
  }
  SECTION("closed between the end and its report") {
    awaited.pair.peers.Reset();
    test::RunWith(awaited.io, [&] { CloseForGood(*awaited.descriptor); });
    REQUIRE(awaited.IsReported());
    CHECK(awaited.failed);
  }
  SECTION("destroyed with its owner") {
    awaited.descriptor.reset();
    RunAWhile(awaited.io);
    CHECK(awaited.reports == 0);
  }
}
