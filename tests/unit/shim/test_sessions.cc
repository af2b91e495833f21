// Sessions come and go with daemons; their resources are reused.
#include <optional>
#include <set>
#include <utility>

#include "client-shim/core/device_launch.h"
#include "client-shim/core/session.h"
#include "client-shim/core/session_status.h"
#include "client-shim/core/trackers.h"
#include "common/board.h"
#include "common/clock.h"
#include "tests/catch.h"
#include "tests/unit/shim/brought.h"
#include "tests/unit/shim/fake_vendor.h"

using namespace xschedd;
using namespace xschedd::shim;

TEST_CASE("two sessions serve any number of daemons") {
  SessionPool& sessions = NewPool();
  std::atomic<Session*> published{nullptr};
  std::set<const Session*> seen;
  std::set<const abi::Board*> boards;
  for (int daemon = 0; daemon < 40; ++daemon) {
    Brought brought;
    brought.writer.Set(3, GateSetting{true, true, static_cast<std::uint32_t>(daemon), 1});
    Session* const session = brought.Take(&sessions, published.load());
    REQUIRE(session != published.load());
    published.store(session);
    // The memory is the new daemon's: each side reads what the other writes.
    CHECK(session->Board().WindowUs(3) == static_cast<std::uint32_t>(daemon));
    CHECK(session->IsAlive());
    session->Ledger().Device(3).submitted.store(static_cast<std::uint64_t>(daemon));
    CHECK(brought.reader.Read(3).submitted == static_cast<std::uint64_t>(daemon));
    seen.insert(session);
    boards.insert(session->Board().Raw());
  }
  CHECK(seen.size() == 2);
  CHECK(boards.size() == 2);
}

TEST_CASE("a refused session makes room for the next") {
  SessionPool& sessions = NewPool();
  std::set<const Session*> seen;
  for (int refusal = 0; refusal < 40; ++refusal)
    seen.insert(Brought().Take(&sessions, nullptr));
  CHECK(seen.size() == 1);
}

TEST_CASE("a session does not change while a thread uses it") {
  SessionPool& sessions = NewPool();
  std::atomic<Session*> published{nullptr};
  Brought first;
  first.writer.Set(0, GateSetting{true, true, 11, 1});
  published.store(first.Take(&sessions, nullptr));
  SessionUse use(published);
  Session* const used = use.Get();
  REQUIRE(used == published.load());
  auto handed_on = std::make_optional<SessionUse>(std::move(use));
  published.store(nullptr);
  std::set<const Session*> seen;
  for (int daemon = 0; daemon < 10; ++daemon)
    seen.insert(Brought().Take(&sessions, nullptr));
  CHECK(seen.size() == 1);
  CHECK(seen.count(used) == 0);
  CHECK(used->Board().WindowUs(0) == 11);
  handed_on.reset();
  seen.clear();
  for (int daemon = 0; daemon < 10; ++daemon)
    seen.insert(Brought().Take(&sessions, nullptr));
  CHECK(seen.count(used) == 1);
}

TEST_CASE("without a published session there is nothing to use") {
  const std::atomic<Session*> published{nullptr};
  CHECK(SessionUse(published).Get() == nullptr);
}

TEST_CASE("wrong memory is refused, and replaces nothing") {
  SessionPool& sessions = NewPool();
  Brought good;
  good.writer.Set(0, GateSetting{true, true, 12, 1});
  Session* const session = good.Take(&sessions, nullptr);
  Brought bad;
  static_cast<abi::Ledger*>(bad.ledger.mapping.Address())->header.version = 0;
  CHECK_FALSE(sessions.Take(*MapSharedMemory(bad.board.fd.Get(), sizeof(abi::Board), Access::kReadOnly),
                            *MapSharedMemory(bad.ledger.fd.Get(), sizeof(abi::Ledger), Access::kReadWrite), 7,
                            abi::Newest(), nullptr));
  CHECK(session->Board().WindowUs(0) == 12);
}

TEST_CASE("a session answers a program from its board and ledger while the lease lasts") {
  SessionPool& sessions = NewPool();
  Brought brought;
  brought.writer.Set(1, GateSetting{true, true, 500, 2});
  brought.writer.RenewLease(1'000'000);
  Session* const session = brought.Take(&sessions, nullptr);
  for (const std::uint32_t slot : {0u, 1u}) {
    abi::LedgerDevice& device = session->Ledger().Device(slot);
    device.submitted.store(10);
    device.completed.store(8);
    device.in_flight.store(2);
    device.window_limit.store(7);
    device.held_ns.store(30);
    device.passthrough.store(4);
    device.gpu_time_ns.store(50);
  }
  xschedd_status all{};
  AddCounters(session, &all);
  CHECK(all.submitted == 20);
  CHECK(all.completed == 16);
  CHECK(all.held_ns == 60);
  CHECK(all.passthrough == 8);
  CHECK(all.gpu_time_ns == 100);
  xschedd_device_status device{};
  ReadDevice(session, 1, 999'999, &device);
  CHECK(device.held == 1);
  CHECK(device.tracked == 1);
  CHECK(device.window_us == 500);
  CHECK(device.window_limit == 7);
  CHECK(device.in_flight == 2);
  CHECK(device.submitted == 10);
  CHECK(device.completed == 8);
  CHECK(device.held_ns == 30);
  CHECK(device.passthrough == 4);
  CHECK(device.gpu_time_ns == 50);
  ReadDevice(session, 1, 1'000'000, &device);
  CHECK(device.held == 0);
  CHECK(device.tracked == 0);
}

TEST_CASE("a tracker counts for the current session, whichever of them came first") {
  SessionPool& sessions = NewPool();
  Brought first, second;
  Session* const one = first.Take(&sessions, nullptr);
  Session* const two = second.Take(&sessions, one);
  FakeVendor vendor;
  Captures captures;
  Deadlines deadlines;
  StreamTable streams;
  void* const blocking = reinterpret_cast<void*>(16);
  streams.Add(blocking, StreamInfo{1, 0, 0, true});
  static auto& trackers = *new Trackers(vendor.Table(), &captures, &deadlines, &streams);  // never destroyed
  const auto launch = [&](int device) {
    DeviceLaunch on_device(trackers.Of(device), StreamKey{}, 0);
    REQUIRE(on_device.Begin(Window{}, false, MonotonicNs()));
    on_device.Leave(true, false);
  };
  CHECK(trackers.Existing(0) == nullptr);
  launch(0);  // for no session
  CHECK(trackers.Of(0) == trackers.Existing(0));
  CHECK(trackers.HasOwnMarkers(MonotonicNs()));
  trackers.Begin(one);
  CHECK(one->Ledger().Device(0).submitted == 0);
  launch(0);
  launch(1);
  CHECK(one->Ledger().Device(0).submitted == 1);
  CHECK(one->Ledger().Device(1).submitted == 1);
  trackers.Begin(two);
  launch(1);
  CHECK(one->Ledger().Device(1).submitted == 1);
  CHECK(two->Ledger().Device(1).submitted == 1);
  ActivityMessage activity;
  trackers.TakeActivity(&activity);
  REQUIRE(activity.queues.size() == 1);
  CHECK(activity.queues[0].slot == 1);
  // The tracker knows streams from before it: the default stream is marked only by its own launches.
  const std::size_t before = vendor.Recorded();
  trackers.Existing(1)->PrepareForCapture();
  CHECK(vendor.Recorded() == before);
}
