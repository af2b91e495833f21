// The saved state: what it contains of the daemon's state, and what is restored from it.
#include <fcntl.h>
#include <google/protobuf/util/message_differencer.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <future>
#include <optional>
#include <string>

#include "common/memory_limit.h"
#include "daemon/registry/process.h"
#include "daemon/registry/process_key.h"
#include "daemon/state/returning_clients.h"
#include "daemon/state/saved_state.h"
#include "daemon/state/state_file.h"
#include "daemon/state/state_writer.h"
#include "tests/catch.h"
#include "tests/unit/daemon/believing.h"

using namespace xschedd;

TEST_CASE("the largest possible state fits") {
  const auto channel = Channel::MakeLasting().value();
  boost::asio::io_context io;
  Config config;
  config.quota.queues_per_client = 100;
  Core core(io, {}, config);
  NewClient fresh;
  fresh.channel = channel.get();
  fresh.id = ~std::uint64_t{0} >> 2;
  fresh.identity.pid = ~std::uint64_t{0};
  fresh.identity.uid = fresh.identity.gid = ~0U;
  fresh.identity.key = {~std::uint64_t{0}, ~std::uint64_t{0}};
  fresh.group_name = std::string(kMaxGroupNameBytes, 'g');
  fresh.runtime = fresh.route = fresh.version = std::string(kMaxWordBytes, 'w');
  fresh.hints = {
      .priority = -100, .weight = 10'000, .latency = Latency::kStrict, .deadline_us = policy::kDeadlineLimits.max};
  Client& client = core.AddClient(std::move(fresh));
  client.late_total = ~std::uint64_t{0};
  client.group->memory.benefit.Use().settled = policy::BenefitMemory::Mode::kWaitsNarrowest;
  client.connected_ns = ~std::uint64_t{0};
  constexpr std::size_t kDevices = kMaxAttachments / kMaxClients;
  for (std::uint32_t slot = 0; slot < kDevices; ++slot) {
    REQUIRE(core.AttachDevice(client, {abi::kMaxDevices - 1 - slot,
                                       "ffff:ff:ff." + std::string(1, "01234567"[slot]) + "/9999",
                                       std::string(kMaxNameBytes, 'n'),
                                       std::string(kMaxVendorBytes, 'v'),
                                       ~0U,
                                       {}}));
  }
  for (std::uint64_t queue = ~std::uint64_t{0} - 50; queue < ~std::uint64_t{0}; ++queue) {
    REQUIRE(core.CreateQueue(client, {.id = queue, .slot = abi::kMaxDevices - 1, .native_priority = -1'000'000'000}));
    REQUIRE(core.SetHints(client, {.deadline_us = policy::kDeadlineLimits.max, .queue = queue}));
  }
  REQUIRE(core.SetHints(client, {.deadline_us = policy::kDeadlineLimits.max, .queue = kDefaultStream}));
  for (const bool is_admin : {true, false}) {
    const Actor by{.pid = 1, .uid = 1, .is_admin = is_admin};
    core.SetPriority({&client}, -100, by);
    core.SetWeight({&client}, 10'000, by);
    core.SetLatency({&client}, Latency::kStrict, by);
    core.SetHold({&client}, true, by);
  }
  core.SetMemoryLimit({&client}, kMemoryLimitMax, {.pid = 1, .uid = 1, .is_admin = true});
  state::SavedState one;
  *one.add_clients() = ToSaved(client, ~std::uint64_t{0});
  CHECK(one.clients(0).queues_size() == static_cast<int>(kMaxSavedQueues));
  const std::string client_bytes = one.SerializeAsString();
  CHECK(client_bytes.size() <= kMaxSavedClientBytes + kDevices * kMaxSavedDeviceBytes);

  Partitions partitions;
  for (std::size_t i = 0; i < kMaxPartitions; ++i)
    partitions["ffff:ff:ff.f/" + std::to_string(1'000 + i)] = {std::string(kMaxNameBytes, 'u')};
  state::SavedState shared;
  FillPartitions(partitions, shared);
  const std::string partition_bytes = shared.SerializeAsString();
  CHECK(partition_bytes.size() <= kMaxPartitions * kMaxSavedPartitionBytes);
  state::SavedState head;
  FillSaved(core, head);
  CHECK(head.SerializeAsString().size() <= kMaxSavedHeadBytes);

  auto file = StateFile::Make().value();
  const UniqueFd copy(::fcntl(file.Fd(), F_DUPFD_CLOEXEC, 0));
  {
    StateWriter writer(std::move(file));
    StateWriter::Parts parts{{0, head.SerializeAsString()}, {~std::uint64_t{0}, partition_bytes}};
    for (std::uint64_t id = 1; id <= kMaxClients; ++id)
      parts.emplace(id, client_bytes);
    std::promise<Result<void>> saved;
    writer.Put(std::move(parts), [&](const Result<void>& is) { saved.set_value(is); });
    CHECK(saved.get_future().get());
  }
  state::SavedState all;
  REQUIRE(all.ParseFromString(*StateFile::Open(UniqueFd(::fcntl(copy.Get(), F_DUPFD_CLOEXEC, 0)))->Read()));
  CHECK(all.clients_size() == static_cast<int>(kMaxClients));
  CHECK(all.partitions_size() == static_cast<int>(kMaxPartitions));
}

TEST_CASE("puts and removals are written, and waiting callers are answered even if writing fails") {
  auto file = StateFile::Make().value();
  const UniqueFd copy(::fcntl(file.Fd(), F_DUPFD_CLOEXEC, 0));
  const auto content = [&] { return StateFile::Open(UniqueFd(::fcntl(copy.Get(), F_DUPFD_CLOEXEC, 0)))->Read(); };
  std::optional<StateWriter> writer(std::in_place, std::move(file));
  const auto put = [&](StateWriter::Parts parts) {
    std::promise<Result<void>> saved;
    writer->Put(std::move(parts), [&](const Result<void>& is) { saved.set_value(is); });
    return saved.get_future().get();
  };
  REQUIRE(put({{3, "three "}, {1, "one "}, {2, "two "}}));
  CHECK(content() == "one two three ");
  writer->Put({{2, ""}, {4, "never "}});
  writer->Put({{4, "four "}});
  writer->Flush();
  CHECK(content() == "one three four ");

  // The writer believes that memory is exhausted.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  const Result<void> refused = put({{5, "five "}});
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().Line().find("cannot write the state: File too large") != std::string::npos);
  CHECK(content() == "one three four ");
  // Unwritten changes are not forgotten.
  REQUIRE(put({{6, "six "}}));
  CHECK(content() == "one three four five six ");
  writer->Put({{7, "seven "}});
  writer.reset();
  CHECK(content() == "one three four five six seven ");
  ::signal(SIGXFSZ, handler);
}

TEST_CASE("a client survives saving unchanged") {
  const auto channel = Channel::MakeLasting().value();
  boost::asio::io_context io;
  Core core(io, {}, test::Believing());
  NewClient fresh;
  fresh.channel = channel.get();
  fresh.identity.pid = 4711;
  fresh.identity.uid = 1000;
  fresh.identity.gid = 100;
  fresh.identity.key = {12345, 67890};
  fresh.group_name = "job";
  fresh.hints = {.priority = 7, .weight = 30, .latency = Latency::kStrict, .deadline_us = 4000};
  fresh.runtime = "HIP";
  fresh.route = "symbols";
  fresh.version = "0.1.0";
  Client& client = core.AddClient(std::move(fresh));
  REQUIRE(core.AttachDevice(client, {2, "0000:C1:00.0", "GPU", "amd", 304, "uuid-a"}));
  REQUIRE(core.AttachDevice(client, {.slot = 3,
                                     .pci_address = "0000:c1:00.0",
                                     .name = "GPU",
                                     .vendor = "amd",
                                     .compute_units = 304,
                                     .uuid = "uuid-b",
                                     .is_under_mps = true}));
  REQUIRE(core.CreateQueue(client, {.id = 9, .slot = 3, .native_priority = -1}));
  REQUIRE(core.CreateQueue(client, {.id = 10, .slot = 3}));
  REQUIRE(core.SetHints(client, {.deadline_us = 500, .queue = 9}));
  REQUIRE(core.SetHints(client, {.deadline_us = 900, .queue = kDefaultStream}));
  core.SetPriority({&client}, -20, {});
  core.SetWeight({&client}, 400, {});
  core.SetLatency({&client}, Latency::kAuto, {});
  core.SetMemoryLimit({&client}, std::uint64_t{24} << 30, {});
  core.SetHold({&client}, true, {});
  const Actor user{.pid = 1, .uid = 1000, .is_admin = false};
  core.SetPriority({&client}, -3, user);
  core.SetWeight({&client}, 70, user);
  core.SetHold({&client}, true, user);
  client.group->memory.benefit.Use().settled = policy::BenefitMemory::Mode::kWaitsNarrowest;
  const state::Client saved = ToSaved(client, 5);
  CHECK(saved.channel() == 5);
  CHECK(saved.layout_hash() == abi::kLayoutHash);
  CHECK(saved.queues_size() == 1);  // the client reports the other one again
  state::SavedState all;
  FillSaved(core, all);
  FillPartitions(core.Clients().Names().Known(), all);

  Core next(io, {}, test::Believing());
  next.Clients().Restore(all.next_client(), PartitionsFrom(all));
  RestoredClient restored = FromSaved(saved);
  restored.fresh.channel = channel.get();
  Client& again = next.RestoreClient(std::move(restored));
  next.RestoreDone();
  CHECK(google::protobuf::util::MessageDifferencer::Equals(ToSaved(again, 5), saved));
  CHECK(again.id == client.id);
  CHECK(again.effective.priority == -20);
  CHECK(again.effective.weight == 400);
  CHECK(again.effective.memory_limit == std::uint64_t{24} << 30);
  CHECK(again.effective.memory_source == PrioritySource::kAdmin);
  CHECK(again.hold);
  CHECK(again.owner_hold);
  CHECK(again.owner == -3);
  CHECK(again.owner_weight == 70u);
  CHECK(again.hint_latency == Latency::kStrict);
  CHECK(again.effective.latency == Latency::kAuto);
  CHECK(again.effective.latency_source == PrioritySource::kAdmin);
  CHECK(again.group->name == "job");
  CHECK(again.group->memory.benefit->settled == policy::BenefitMemory::Mode::kWaitsNarrowest);
  CHECK(again.attachments.at(3)->device->pci_address == "0000:c1:00.0/1");
  CHECK(again.attachments.at(3)->deadline_after_ns == 500 * policy::kNsPerUs);
  CHECK((again.attachments.at(3)->is_under_mps && !again.attachments.at(2)->is_under_mps));

  SECTION("the next one has another number") {
    NewClient other;
    other.identity.pid = 1;
    CHECK(next.AddClient(std::move(other)).id == client.id + 1);
  }
  SECTION("its session reports devices and queues again") {
    NewClient back;
    back.identity.pid = 4711;
    back.group_name = "job";
    back.hints = {.priority = 8, .weight = {}, .deadline_us = 4000};
    next.ResumeClient(again, std::move(back));
    CHECK(again.hint == 8);
    CHECK(!again.hint_weight);
    CHECK(again.effective.priority == -20);
    CHECK(again.hold);
    CHECK(next.AttachDevice(again, {3, "0000:c1:00.0", "GPU", "amd", 304, "uuid-b"}));
    CHECK(!next.AttachDevice(again, {3, "0000:c1:00.0", "GPU", "amd", 304, "uuid-b"}));  // once
    CHECK(!next.AttachDevice(again, {2, "0000:c2:00.0", "GPU", "amd", 304, {}}));        // it was another
    CHECK(next.CreateQueue(again, {.id = 9, .slot = 3, .native_priority = -1}));
    CHECK(!next.CreateQueue(again, {.id = 9, .slot = 3}));
    next.ResumeDone(again);
    CHECK(again.queues.contains(9));
    CHECK(next.CreateQueue(again, {.id = 10, .slot = 3}));
    CHECK(again.attachments.at(3)->deadline_after_ns == 500 * policy::kNsPerUs);
  }
  SECTION("a queue destroyed while no daemon ran is gone, with its deadline") {
    NewClient back;
    back.identity.pid = 4711;
    back.group_name = "job";
    next.ResumeClient(again, std::move(back));
    CHECK(next.AttachDevice(again, {3, "0000:c1:00.0", "GPU", "amd", 304, "uuid-b"}));
    next.ResumeDone(again);
    CHECK(again.queues.empty());
    CHECK(again.attachments.at(3)->deadline_after_ns == 900 * policy::kNsPerUs);
  }
}

TEST_CASE("a policy survives saving unchanged; an unknown one is ignored") {
  policy::Settings settings;
  settings.name = policy::Name::kLaxity;
  settings.linger_us = 1;
  settings.guard_ms_per_s = 0;
  settings.window_us = 3;
  settings.top_window_us = 0;
  settings.max_concurrent = 0;
  settings.turn_ms = 6;
  settings.tolerance_percent = 0;
  settings.share_slack_us = 700;
  settings.laxity_margin_us = 8;
  settings.fair_quantum_ms = 9;
  settings.time_slices = !policy::Settings{}.time_slices;
  CHECK(FromSaved(ToSaved(settings)) == settings);
  settings.max_concurrent.reset();
  CHECK(FromSaved(ToSaved(settings)) == settings);
  state::Policy of_another = ToSaved(settings);
  of_another.set_turn_ms(0);  // out of range
  CHECK(FromSaved(of_another)->turn_ms == policy::Settings{}.turn_ms);
  of_another.set_name("best");
  CHECK(!FromSaved(of_another));
}

TEST_CASE("live settings survive a restart, except where the files have changed") {
  policy::Settings then;
  policy::Settings live = then;
  live.name = policy::Name::kShare;
  live.turn_ms = 7;
  live.time_slices = !then.time_slices;
  live.max_concurrent = 3;
  CHECK(AfterRestart(live, then, then) == live);
  policy::Settings now = then;
  now.turn_ms = 9;      // changed since
  now.linger_us = 300;  // changed since, and never set live
  const policy::Settings after = AfterRestart(live, then, now);
  CHECK((after.turn_ms == 9 && after.linger_us == 300));
  CHECK((after.name == policy::Name::kShare && after.max_concurrent == 3u));
  CHECK(after.time_slices == live.time_slices);
  now.name = policy::Name::kFair;
  CHECK(AfterRestart(live, then, now).name == policy::Name::kFair);
}

TEST_CASE("a client without memory is kept for any setting, and for nothing else") {
  boost::asio::io_context io;
  Core core(io, {}, {});
  const auto is_kept = [&](const auto& set) {
    ReturningClients returning(io, core, [](std::uint64_t) {});
    state::Client saved;
    saved.set_id(7);
    saved.set_hint(-3);
    set(saved);
    returning.AddAbsent(saved);
    return !returning.Absent().empty();
  };
  CHECK(!is_kept([](state::Client&) {}));
  CHECK(is_kept([](state::Client& client) { client.set_admin_priority(0); }));
  CHECK(is_kept([](state::Client& client) { client.set_admin_weight(200); }));
  CHECK(is_kept([](state::Client& client) { client.set_admin_latency("strict"); }));
  CHECK(is_kept([](state::Client& client) { client.set_hold(true); }));
  CHECK(is_kept([](state::Client& client) { client.set_owner_priority(-1); }));
  CHECK(is_kept([](state::Client& client) { client.set_owner_weight(50); }));
  CHECK(is_kept([](state::Client& client) { client.set_owner_latency("auto"); }));
  CHECK(is_kept([](state::Client& client) { client.set_owner_hold(true); }));
  CHECK(is_kept([](state::Client& client) { client.set_others_mode("free"); }));
}

TEST_CASE("values that this release does not accept are ignored") {
  state::Client saved;
  saved.set_admin_priority(101);
  saved.set_admin_weight(0);
  saved.set_hint(-101);
  saved.set_hint_weight(1'000'000);
  saved.set_deadline_us(~std::uint64_t{0});
  saved.set_hint_latency("low");
  saved.set_others_mode("held-wider");
  saved.add_devices()->set_pci_address("nowhere");
  const RestoredClient client = FromSaved(saved);
  CHECK(!client.set.settings.admin);
  CHECK(!client.set.settings.admin_weight);
  CHECK(!client.fresh.hints.priority);
  CHECK(!client.fresh.hints.weight);
  CHECK(!client.fresh.hints.deadline_us);
  CHECK(!client.fresh.hints.latency);
  CHECK(client.others_mode == policy::BenefitMemory::Mode::kHeld);
  boost::asio::io_context io;
  Core core(io, {}, {});
  CHECK(core.RestoreClient(client).attachments.empty());
}

TEST_CASE("a process is recognised by its pid and key, and by nothing less") {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;)
      ::pause();
  }
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  REQUIRE(pidfd.IsValid());
  const ProcessKey key = ReadProcessKey(child, pidfd.Get());
  CHECK(key.start_ticks != 0);
  CHECK(OpenProcess(child, key).IsValid());
  CHECK(!OpenProcess(::getpid(), key).IsValid());
  CHECK(!OpenProcess(0, key).IsValid());
  CHECK(!OpenProcess(child, {}).IsValid());
  CHECK(!OpenProcess(child, {key.start_ticks + 1, 0}).IsValid());
  // A kernel without pidfs knows only the start time; one with pidfs wants more.
  CHECK(OpenProcess(child, {key.start_ticks, 0}).IsValid());
  if (key.pidfd_inode != 0) CHECK(!OpenProcess(child, {key.start_ticks, key.pidfd_inode + 1}).IsValid());
  ::kill(child, SIGKILL);
  while (!HasExited(pidfd.Get()))
    ::usleep(1000);
  // Not reaped yet, so the pid is still its own.
  CHECK(!OpenProcess(child, key).IsValid());
  CHECK(ReadProcessKey(child, pidfd.Get()).start_ticks == 0);
  ::waitpid(child, nullptr, 0);
  CHECK(!OpenProcess(child, key).IsValid());
}

TEST_CASE("a channel is rebuilt unchanged from its descriptors in any order, and from nothing else") {
  auto channel = Channel::MakeLasting().value();
  const auto copies = [&](std::vector<int> from) {
    std::vector<UniqueFd> result;
    for (const int fd : from)
      result.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    return result;
  };
  const int board = channel->StoredBoardFd();
  const int ledger = channel->LedgerFd();
  const int eventfd = channel->EventFd();
  // The client's descriptor of the board is read-only.
  CHECK(!MapSharedMemory(channel->BoardFd(), sizeof(abi::Board), Access::kReadWrite));
  const Mapping view = MapSharedMemory(channel->BoardFd(), sizeof(abi::Board), Access::kReadOnly).value();
  const BoardReader reader = BoardReader::Open(static_cast<const abi::Board*>(view.Address())).value();
  channel->Board().Set(3, {true, true, 500, 2});
  channel->Board().Set(4, {false, true, 0, 0});
  const std::uint32_t word = reader.Word(3);

  for (const auto& order : std::vector<std::vector<int>>{{board, ledger, eventfd}, {eventfd, ledger, board}}) {
    auto rebuilt = Channel::Rebuild(abi::Newest(), copies(order));
    REQUIRE(rebuilt);
    CHECK((*rebuilt)->IsLasting());
    CHECK(reader.Word(3) == word);  // unwritten
    CHECK((*rebuilt)->Board().Get(3) == GateSetting{true, true, 500, 2});
    CHECK(!(*rebuilt)->Board().Set(3, {true, true, 500, 2}));
  }
  auto rebuilt = Channel::Rebuild(abi::Newest(), copies({board, ledger, eventfd})).value();
  CHECK(rebuilt->Board().Set(3, {}));
  CHECK(*reader.SummaryWord() != 0);  // the other slot
  CHECK(rebuilt->Board().Set(4, {}));
  CHECK(*reader.SummaryWord() == 0);

  CHECK(!Channel::Rebuild(abi::Newest(), copies({board, ledger})));
  CHECK(!Channel::Rebuild(abi::Newest(), copies({board, board, eventfd})));
  CHECK(!Channel::Rebuild(abi::Newest(), copies({board, ledger, eventfd, eventfd})));
  CHECK(
      !Channel::Rebuild(abi::Newest(), copies({channel->BoardFd(), ledger, eventfd})));  // the client's read-only view
  CHECK(!Channel::Rebuild(abi::Newest(), copies({board, ledger, STDIN_FILENO})));
  CHECK(!Channel::Rebuild(abi::Newest(), {}));
  // A board sealed against new writers is useless to a daemon.
  auto passing = Channel::Make().value();
  CHECK(!Channel::Rebuild(abi::Newest(), copies({passing->BoardFd(), passing->LedgerFd(), passing->EventFd()})));
  // A memory file of the right name that could still be resized.
  const UniqueFd loose(::memfd_create("xschedd-ledger", MFD_CLOEXEC));
  REQUIRE(::ftruncate(loose.Get(), sizeof(abi::Ledger)) == 0);
  CHECK(!Channel::Rebuild(abi::Newest(), copies({board, loose.Get(), eventfd})));
}
