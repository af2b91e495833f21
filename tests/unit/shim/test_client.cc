// The client alone, without daemon and agent: the test begins and ends sessions as the agent does.
#include <sys/eventfd.h>

#include <atomic>
#include <memory>
#include <vector>

#include "client-shim/core/client.h"
#include "common/clock.h"
#include "tests/catch.h"
#include "tests/unit/shim/fake_vendor.h"

using namespace xschedd;
using namespace xschedd::shim;

namespace {

std::atomic<const abi::Word*> g_summary{nullptr};

// The launch path goes through the client.
bool IsSlow() {
  const abi::Word* word = g_summary.load();
  return word != nullptr && word->load() != 0;
}

// A client and the memory of one session. Neither is ever freed, because a client uses its session until the process
// ends.
struct Process {
  abi::Board board{};
  abi::Ledger ledger{};
  FakeVendor vendor;
  StubTable stub{kInterfaceVersion, vendor.Table(), nullptr, 0, 0, [](const abi::Word* word) { g_summary.store(word); },
                 nullptr,           nullptr};
  Client client{stub};
  BoardWriter writer{&board};
  LedgerReader reader{&ledger, &board};
  SessionPool sessions;
  Session* session = nullptr;

  void BeginTracked() {
    writer.RenewLease(MonotonicNs() + 1'000'000'000'000);
    writer.Set(0, {false, true, 500, 2});
    session = sessions
                  .Take(Mapping(&board, sizeof board), Mapping(&ledger, sizeof ledger),
                        ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), abi::Newest(), nullptr)
                  .value();
    client.BeginSession(session);
  }
  void Launch(void* stream) {
    Submission submission{};
    submission.stream = stream;
    client.SubmitBegin(&submission);
    client.SubmitEnd(&submission, true);
    client.AwaitDecisionUntil(0);  // as the agent, once the daemon has had time to say a word about a new device
  }
  Sync Begin(SyncScope scope, void* stream) {
    Sync sync;
    client.SyncBegin(&sync, scope, stream);
    return sync;
  }
};

Process& MakeProcess() {
  static auto& all = *new std::vector<std::unique_ptr<Process>>;
  return *all.emplace_back(std::make_unique<Process>());
}

}  // namespace

TEST_CASE("a query after the end of a session is repeated while a marker of that session is unfinished") {
  Process& process = MakeProcess();
  int stream = 0;
  process.BeginTracked();
  REQUIRE(IsSlow());
  process.Launch(&stream);
  // A synchronisation marks its work, and has not returned when the session ends.
  Sync waiting = process.Begin(SyncScope::kStream, &stream);
  REQUIRE(process.vendor.Recorded() > 0);
  process.client.EndSession();
  process.client.SyncEnd(&waiting, true);

  // The program's work has finished, the marker has not been reached: the query finds it and is made again.
  CHECK(IsSlow());
  Sync query = process.Begin(SyncScope::kQuery, &stream);
  CHECK(process.client.QueryAgain(query));
  process.client.SyncEnd(&query, true);

  // It has been reached, and the launch path is free again.
  CHECK_FALSE(IsSlow());
}

TEST_CASE("a session that left no marker leaves the launch path free") {
  Process& process = MakeProcess();
  process.BeginTracked();
  REQUIRE(IsSlow());
  process.client.EndSession();
  CHECK_FALSE(IsSlow());
}

TEST_CASE("a query after the end of tracking is repeated while a marker of the client is unfinished") {
  Process& process = MakeProcess();
  int stream = 0;
  process.BeginTracked();
  process.Launch(&stream);
  Sync waiting = process.Begin(SyncScope::kStream, &stream);
  REQUIRE(process.vendor.Recorded() > 0);
  process.client.SyncEnd(&waiting, true);
  // The last other client leaves.
  process.writer.Set(0, {});
  CHECK(IsSlow());
  Sync query = process.Begin(SyncScope::kQuery, &stream);
  CHECK(process.client.QueryAgain(query));
  process.client.SyncEnd(&query, true);
  CHECK_FALSE(IsSlow());
  // They come back, and leave again.
  process.writer.Set(0, {false, true, 500, 2});
  CHECK(IsSlow());
  process.Launch(&stream);
  process.writer.Set(0, {});
  CHECK(IsSlow());
}

TEST_CASE("launches that are no longer counted free the launch path, also on a stream that is never queried") {
  Process& process = MakeProcess();
  int stream = 0;
  int event = 0;
  process.BeginTracked();
  process.Launch(&stream);
  process.client.EventRecorded(&event, &stream);
  Sync waiting = process.Begin(SyncScope::kStream, &stream);
  REQUIRE(process.vendor.Recorded() > 0);
  // The event is in front of the marker: the launches have finished, and the marker may not have been reached.
  Sync until = process.Begin(SyncScope::kEvent, &event);
  process.client.SyncEnd(&until, true);
  process.client.SyncEnd(&waiting, false);
  process.writer.Set(0, {});
  process.Launch(&stream);
  CHECK(IsSlow());
  while (IsSlow())
    process.Launch(&stream);
}

TEST_CASE("a query behind an unfinished marker is not repeated for ever") {
  Process& process = MakeProcess();
  int stream = 0;
  process.BeginTracked();
  process.Launch(&stream);
  Sync waiting = process.Begin(SyncScope::kStream, &stream);
  process.client.EndSession();
  process.client.SyncEnd(&waiting, false);
  Sync query = process.Begin(SyncScope::kQuery, &stream);
  while (process.client.QueryAgain(query)) {
  }
  process.client.SyncEnd(&query, false);
  CHECK_FALSE(IsSlow());
}

TEST_CASE("without a daemon, a stream below others waits while they have work, and has little in flight") {
  Process& process = MakeProcess();
  int high = 0, low = 0;
  process.client.StreamCreated(&high, -1, 1);
  process.client.StreamCreated(&low, 0, 1);
  CHECK_FALSE(IsSlow());
  REQUIRE(process.client.ScheduleStreams(true) == XSCHEDD_OK);
  REQUIRE(IsSlow());
  const auto waited = [&process] {
    xschedd_status status{};
    process.client.GetStatus(&status);
    CHECK(status.schedules_streams == 1);
    return status.streams_held_ns;
  };
  // Its work never finishes here, so the lower stream continues once the higher one is known to stand still.
  // A machine that stops this thread for as long spoils a turn of the loop.
  for (int i = 0; i < 100 && waited() == 0; ++i) {
    process.Launch(&high);
    process.Launch(&low);
    process.vendor.Finish(&high, 1);
    process.vendor.Finish(&low, 1);
    Sync done = process.Begin(SyncScope::kDevice, nullptr);
    process.client.SyncEnd(&done, true);
  }
  const auto before = waited();
  CHECK(before > 0);
  process.Launch(&low);
  process.Launch(&high);
  process.Launch(nullptr);
  // The program's hint for a stream overrides the priority with which it was created.
  REQUIRE(process.client.Requests().SetStreamPriority(&low, 50) == XSCHEDD_ERROR_NOT_CONNECTED);
  process.Launch(&low);
  CHECK(waited() - before < kLongestHoldNs);
  process.client.StreamDestroying(&low);
  process.client.StreamDestroying(&high);
  Sync last = process.Begin(SyncScope::kDevice, nullptr);
  process.client.SyncEnd(&last, true);
  CHECK_FALSE(IsSlow());
}

TEST_CASE("streams that are not ordered leave the launch path free") {
  Process& process = MakeProcess();
  int high = 0, low = 0;
  process.client.StreamCreated(&low, 0, 0);
  REQUIRE(process.client.ScheduleStreams(true) == XSCHEDD_OK);
  CHECK_FALSE(IsSlow());  // all are alike
  process.client.StreamCreated(&high, -5, 0);
  CHECK(IsSlow());
  REQUIRE(process.client.ScheduleStreams(false) == XSCHEDD_OK);
  CHECK_FALSE(IsSlow());
  REQUIRE(process.client.ScheduleStreams(true) == XSCHEDD_OK);
  CHECK(IsSlow());
  process.client.GiveUp();
  CHECK_FALSE(IsSlow());
}

// ---- device memory

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// False: refused.
bool Allocate(Process* process, std::uint64_t handle, std::uint64_t bytes, MemoryKind kind = MemoryKind::kPlain) {
  MemoryRequest request;
  request.kind = kind;
  request.bytes = bytes;
  if (!process->client.MemoryReserve(&request)) return false;
  process->client.MemoryKeep(request, handle, bytes);
  return true;
}
void Free(Process* process, std::uint64_t handle) {
  MemoryRelease release;
  process->client.MemoryFreeing(&release, handle, false);
  process->client.MemoryFreed(&release, true);
}

}  // namespace

TEST_CASE("the daemon's limit of device memory binds, and the ledger has the account") {
  Process& process = MakeProcess();
  CHECK(Allocate(&process, 1, 3 * kGiB));  // before there is a session
  process.BeginTracked();
  process.client.SetDescription(1, 0);
  CHECK(process.reader.Memory(0)->bytes == 3 * kGiB);
  CHECK(process.client.ViewMemory(0).limit_bytes == 0);
  REQUIRE(process.writer.SetMemoryLimit(0, 8 * kGiB));
  CHECK(Allocate(&process, 2, 5 * kGiB));
  CHECK_FALSE(Allocate(&process, 3, 1));
  CHECK(process.reader.Memory(0)->bytes == 8 * kGiB);
  CHECK(process.reader.Memory(0)->refused == 1);
  CHECK(process.client.ViewMemory(0).limit_bytes == 8 * kGiB);
  CHECK(process.client.ViewMemory(-1).used_bytes == 8 * kGiB);
  Free(&process, 1);
  CHECK(process.reader.Memory(0)->bytes == 5 * kGiB);
  // A limit that has gone down takes nothing away; one that has gone binds nobody.
  REQUIRE(process.writer.SetMemoryLimit(0, 4 * kGiB));
  CHECK_FALSE(Allocate(&process, 3, 1));
  process.client.EndSession();
  CHECK(Allocate(&process, 3, 100 * kGiB));
}

TEST_CASE("what pools only keep is given back before an allocation is refused") {
  Process& process = MakeProcess();
  process.BeginTracked();
  process.client.SetDescription(1, 0);
  REQUIRE(process.writer.SetMemoryLimit(0, 8 * kGiB));
  CHECK(Allocate(&process, 1, 2 * kGiB, MemoryKind::kPooled));
  process.vendor.kept_by_pools = 7 * kGiB;
  process.vendor.pools_must_keep = 2 * kGiB;
  CHECK(process.client.ViewMemory(0).used_bytes == 7 * kGiB);
  CHECK(Allocate(&process, 2, 6 * kGiB));
  CHECK(process.vendor.kept_by_pools == 2 * kGiB);
  CHECK_FALSE(Allocate(&process, 3, 1));
  CHECK(process.reader.Memory(0)->refused == 1);
  // During a capture the runtime is not asked.
  int stream = 0;
  Free(&process, 2);
  process.vendor.kept_by_pools = 7 * kGiB;
  process.client.CaptureBegun(&stream);
  MemoryRequest request;
  request.bytes = 7 * kGiB;
  CHECK_FALSE(process.client.MemoryReserve(&request));
  CHECK(request.is_captured);
  CHECK(process.vendor.kept_by_pools == 7 * kGiB);
  process.client.CaptureEnded(&stream);
}
