// A session with the test in the place of gRPC. Sessions of clients of a real daemon are tested in
// tests/integration/daemon.
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/scheduler/queue_priority_words.h"
#include "daemon/sessions/session_reactor.h"
#include "tests/catch.h"
#include "tests/fake_stream.h"
#include "tests/unit/daemon/loop.h"
#include "tests/unit/daemon/services.h"

using namespace xschedd;
using test::Pair;
using test::RunUntil;

namespace {

using Session = SessionReactor<test::FakeStream>;

// A daemon, one connection of a client without shared memory, and its session.
struct SessionWorld : test::Services {
  explicit SessionWorld(const Quota& quota = test::SmallQuota())
      : Services(
            quota, [this](const Connection& connection) { grpc_end.Reset(connection.fd); },
            [this](Connection& connection) {
              core.RemoveClient(connection.client_id, "its connection closed");
              connection.client_id = 0;
            }) {
    Pair pair;
    test::Say(pair.peers, "PRI * HTTP/2.0\r\n\r\n");
    connections.Accept(std::move(pair.ours), false);
    peer = std::move(pair.peers);
    REQUIRE(RunUntil(io, [this] { return grpc_end.IsValid(); }));
  }
  ~SessionWorld() {
    End();
    connections.CloseAll();
    Poll();
    CHECK(sessions.empty());
    CHECK(core.Clients().Clients().empty());
    core.Stop();
    Poll();
  }

  void Poll() {
    io.restart();
    io.poll();
  }
  void Begin() {
    session = new Session(host, sessions, false, "fd:" + std::to_string(grpc_end.Get()));
    Poll();
  }
  // As gRPC does it: operations in progress fail, then the reactor ends.
  void End() {
    if (session == nullptr) return;
    session->OnCancel();
    if (std::exchange(session->reading, nullptr) != nullptr) session->OnReadDone(false);
    if (std::exchange(session->is_writing, false)) session->OnWriteDone(false);
    Poll();
    std::exchange(session, nullptr)->OnDone();
    Poll();
  }
  void Receive(v1::ClientMessage message) {
    REQUIRE(session->reading != nullptr);
    *std::exchange(session->reading, nullptr) = std::move(message);
    session->OnReadDone(true);
    Poll();
  }
  void SayHello() {
    v1::ClientMessage message;
    message.mutable_hello()->set_client_version("test");
    Receive(std::move(message));
    Written();
  }
  // Completes all writes.
  void Written() {
    while (session->is_writing) {
      session->is_writing = false;
      session->OnWriteDone(true);
      Poll();
    }
  }
  // Receives a wrong message, to which the session answers with a notice.
  void ReceiveNonsense() { Receive(v1::ClientMessage()); }
  std::string LastNotice() const { return session->said.back().notice().text(); }
  Client& OnlyClient() { return *core.Clients().Clients().begin()->second; }

  UniqueFd peer;
  UniqueFd grpc_end;
  ConfigurationSinks sessions;
  Session* session = nullptr;
};

v1::ClientMessage Passed(const std::string& rule, int count = 1) {
  v1::ClientMessage message;
  for (int i = 0; i < count; ++i) {
    v1::ActivityBatch::Passed& passed = *message.mutable_activity()->add_passed();
    passed.set_rule(rule);
    passed.set_count(1);
  }
  return message;
}

}  // namespace

TEST_CASE("a client is told the priority of its hardware queues when it changes, and its answer is kept") {
  SessionWorld world;
  const auto wanted = [&] { return world.session->said.back().configuration().queue_priority(); };
  world.core.OnConfigured([&](std::uint64_t client) {
    for (const auto& [id, one] : ConfigurationSinks(world.sessions))
      if (client == 0 || client == id) one->SendConfiguration();
  });
  world.Begin();
  world.SayHello();
  Client& client = world.OnlyClient();
  const auto set_priority = [&](int priority) {
    const std::size_t before = world.session->said.size();
    world.core.SetPriority({&client}, priority, Actor{});
    world.Written();
    return world.session->said.size() - before;
  };
  CHECK(set_priority(5) == 0);  // off
  policy::Settings settings = world.core.Settings().policy;
  settings.queue_priority = true;
  world.core.SetPolicy(settings, Actor{});
  world.Written();
  CHECK(wanted() == v1::QUEUE_PRIORITY_HIGH);
  CHECK(set_priority(6) == 0);  // still high
  CHECK(set_priority(-1) == 1);
  CHECK(wanted() == v1::QUEUE_PRIORITY_LOW);
  CHECK(set_priority(0) == 1);
  CHECK(wanted() == v1::QUEUE_PRIORITY_UNSPECIFIED);
  CHECK(set_priority(7) == 1);
  CHECK(wanted() == v1::QUEUE_PRIORITY_HIGH);

  client.runtime = "HIP 7.2.4";
  CHECK(QueuePriorityText(client, settings) == "queue priority high, not reported by the client so far");
  v1::ClientMessage report;
  v1::QueuePriorities& queues = *report.mutable_queue_priorities();
  queues.set_priority(v1::QUEUE_PRIORITY_HIGH);
  queues.set_queues(4);
  queues.set_in_force(9);
  world.Receive(report);
  CHECK(QueuePriorityText(client, settings) == "queue priority high on 4 hardware queues");
  queues.set_in_force(1);
  world.Receive(report);
  CHECK(QueuePriorityText(client, settings) ==
        "queue priority high on 1 of 4 hardware queues: the runtime refuses it on the others");
  const std::uint64_t refused = world.core.RefusedTotal();
  world.Receive(report);  // the same again is reported once
  CHECK(world.core.RefusedTotal() == refused);
  for (const auto& [priority, kept] : {std::pair(v1::QUEUE_PRIORITY_LOW, policy::QueuePriority::kLow),
                                       std::pair(v1::QUEUE_PRIORITY_UNSPECIFIED, policy::QueuePriority::kProgram)}) {
    queues.set_priority(priority);
    queues.set_in_force(4);
    world.Receive(report);
    CHECK(client.queue_priority.priority == kept);
  }
  client.runtime = "CUDA 13.0";
  CHECK(QueuePriorityText(client, settings).empty());
  queues.set_in_force(0);
  world.Receive(report);  // nothing to say of it
  CHECK(world.core.RefusedTotal() == refused);
}

TEST_CASE("a session on a closed connection ends, whenever that is noticed") {
  SessionWorld world;
  SECTION("before it began") {
    world.connections.CloseAll();
    world.Begin();
    CHECK(world.session->ended.error_message() == "the connection is closed already");
  }
  SECTION("before its first message") {
    world.Begin();
    world.connections.CloseAll();
    world.Receive(v1::ClientMessage());
    CHECK(world.session->ended.error_message() == "the client is gone");
  }
  SECTION("in the middle: nothing more is sent") {
    world.Begin();
    world.SayHello();
    world.connections.CloseAll();
    CHECK(world.core.Clients().Clients().empty());
    const std::size_t before = world.session->said.size();
    for (const auto& [id, one] : ConfigurationSinks(world.sessions))
      one->SendConfiguration();
    CHECK(world.session->said.size() == before);
    world.Receive(v1::ClientMessage());
    CHECK(world.session->ended.error_message() == "the client is gone");
  }
  CHECK(world.session->is_finished);
  CHECK(world.session->ended.error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("operations in progress when a session ends do no harm") {
  SessionWorld world;
  world.Begin();
  world.SayHello();
  world.ReceiveNonsense();
  REQUIRE(world.session->is_writing);
  SECTION("a write") {
    world.session->OnCancel();
    world.session->is_writing = false;
    world.session->OnWriteDone(GENERATE(true, false));
  }
  SECTION("a message") {
    world.session->OnCancel();
    *std::exchange(world.session->reading, nullptr) = v1::ClientMessage();
    world.session->OnReadDone(true);
  }
  SECTION("a failed write: gRPC reports the end itself") {
    world.session->is_writing = false;
    world.session->OnWriteDone(false);
    world.Poll();
    CHECK_FALSE(world.session->is_finished);
    world.session->OnCancel();
  }
  const std::size_t before = world.session->said.size();
  world.Poll();
  CHECK(world.session->ended.error_code() == grpc::StatusCode::CANCELLED);
  CHECK(world.session->said.size() == before);
  CHECK(world.core.Clients().Clients().empty());
}

TEST_CASE("a client that does not read loses notices, and the next one says how many") {
  SessionWorld world;
  world.Begin();
  world.SayHello();
  constexpr int kWaiting = 32;
  for (int i = 0; i < kWaiting + 8; ++i)
    world.ReceiveNonsense();
  const std::size_t before = world.session->said.size();
  world.Written();
  CHECK(world.session->said.size() == before + kWaiting - 1);
  CHECK(world.LastNotice().find("left out)") == std::string::npos);
  world.ReceiveNonsense();
  CHECK(world.LastNotice().ends_with(" (8 earlier notices were dropped)"));
}

TEST_CASE("a session ends with the reason when the user's memory quota is used up") {
  Quota quota = test::SmallQuota();
  quota.memory_kib_per_uid = 4;
  SessionWorld world(quota);
  world.Begin();
  world.SayHello();
  for (char rule = 'a'; rule < 'a' + 20; ++rule)
    world.Receive(Passed(std::string(200, rule)));
  // Notices are left out.
  for (int i = 0; i < 20; ++i)
    world.ReceiveNonsense();
  CHECK_FALSE(world.session->is_finished);
  // What must arrive, and is not read, is not.
  for (int i = 0; i < 60 && !world.session->is_finished; ++i) {
    for (const auto& [id, one] : ConfigurationSinks(world.sessions))
      one->SendConfiguration();
    world.Poll();
  }
  CHECK(world.session->is_finished);
  CHECK(world.session->ended.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(world.session->ended.error_message().find("memory_kib_per_uid") != std::string::npos);
  CHECK(world.quotas.Held(::getuid(), QuotaKind::kMemory) == 0);
}

TEST_CASE("rules beyond the user's memory quota are not counted separately, and the session goes on") {
  Quota quota = test::SmallQuota();
  // In the second case there is no memory left for the notice, either.
  const auto [kib, length, can_say] = GENERATE(std::tuple(7U, 256, true), std::tuple(4U, 200, false));
  quota.memory_kib_per_uid = kib;
  const auto size = static_cast<std::size_t>(length);
  SessionWorld world(quota);
  world.Begin();
  world.SayHello();
  for (char rule = 'a'; rule < 'a' + 20; ++rule) {
    world.Receive(Passed(std::string(size, rule)));
    world.Written();
  }
  CHECK_FALSE(world.session->is_finished);
  const std::size_t kept = world.OnlyClient().passed.size();
  CHECK(kept > 0);
  CHECK(kept < 20);
  int notices = 0;
  for (const v1::DaemonMessage& message : world.session->said)
    notices += message.notice().text().ends_with("; further passthrough rules are not counted separately") ? 1 : 0;
  CHECK(notices == (can_say ? 1 : 0));
  // Known rules are still counted.
  world.Receive(Passed(std::string(size, 'a')));
  CHECK(world.OnlyClient().passed.at(std::string(size, 'a')) == 2);
}

TEST_CASE("a batch with too many entries of either kind is ignored") {
  SessionWorld world;
  world.Begin();
  world.SayHello();
  constexpr int kMany = 8'193;
  SECTION("of rules") {
    world.Receive(Passed("a", kMany));
  }
  SECTION("of queues") {
    v1::ClientMessage message;
    for (int i = 0; i < kMany; ++i)
      message.mutable_activity()->add_queues();
    world.Receive(std::move(message));
  }
  CHECK(world.LastNotice() == "a batch of more than 8192 entries was ignored; send smaller batches");
  CHECK(world.OnlyClient().passed.empty());
}
