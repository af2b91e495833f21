// The Admin service behind a real gRPC, with a loop that the test controls: what happens between a call and its turn in
// the loop. What each call does is tested with a real daemon (tests/integration/daemon, tests/integration/rights).
#include <absl/synchronization/mutex.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "admin.grpc.pb.h"
#include "daemon/admin/admin_service.h"
#include "daemon/connections/rpc_server.h"
#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"
#include "tests/unit/daemon/loop.h"
#include "tests/unit/daemon/notified.h"
#include "tests/unit/daemon/services.h"

using namespace xschedd;
using test::Pair;
using test::RunUntil;

namespace {

struct ServiceWorld : test::Services {
  ServiceWorld()
      : Services(test::SmallQuota(), [this](const Connection& connection) {
          if (adopt_instead) return adopt_instead(connection.fd);
          (connection.is_admin ? admin_rpc : rpc)->Adopt(connection.fd);
        }) {
    PrepareGrpc();
    auto started = RpcServer::Start({&service.Rpc()}, [this](std::string peer) {
      const std::lock_guard lock(mutex);
      unknown.push_back(std::move(peer));
    });
    REQUIRE(started);
    rpc = std::move(*started);
    auto admins = RpcServer::Start({&admin_service.Rpc()}, [](const std::string&) {});
    REQUIRE(admins);
    admin_rpc = std::move(*admins);
  }
  ~ServiceWorld() {
    metrics.Stop();
    connections.CloseAll();
    std::atomic<bool> stopped = false;
    std::thread stopper([&] {
      rpc->Stop();
      admin_rpc->Stop();
      stopped = true;
    });
    CHECK(RunUntil(io, [&] { return stopped.load(); }));
    stopper.join();
    rpc.reset();
    admin_rpc.reset();
    core.Stop();
    test::RunAWhile(io);
  }

  // Calls as a peer on admin.sock, or on client.sock.
  std::shared_ptr<grpc::Channel> Connect(bool is_admin) {
    Pair pair;
    connections.Accept(std::move(pair.ours), is_admin);
    return grpc::CreateInsecureChannelFromFd("test", pair.peers.Release());
  }
  // Calls as a peer whose connection was forgotten before gRPC heard of it.
  std::shared_ptr<grpc::Channel> ConnectUnknown() const {
    Pair pair;
    rpc->Adopt(pair.ours.Release());
    return grpc::CreateInsecureChannelFromFd("test", pair.peers.Release());
  }

  AdminOperations operations{core, connections, quotas};
  MetricsCollector metrics{io, core, connections, quotas};
  AdminService service{host, operations, metrics, false};
  AdminService admin_service{host, operations, metrics, true};
  std::unique_ptr<RpcServer> rpc;  // of client.sock
  std::unique_ptr<RpcServer> admin_rpc;
  std::function<void(int)> adopt_instead;
  std::mutex mutex;
  std::vector<std::string> unknown;  // callers of unknown methods
};

// A call, and its end.
template <typename Request, typename Response>
grpc::Status Call(ServiceWorld& world, const std::shared_ptr<grpc::Channel>& channel,
                  void (v1::Admin::StubInterface::async_interface::*method)(grpc::ClientContext*, const Request*,
                                                                            Response*,
                                                                            std::function<void(grpc::Status)>),
                  const Request& request, Response& response) {
  const auto stub = v1::Admin::NewStub(channel);
  grpc::ClientContext context;
  grpc::Status status;
  std::atomic<bool> done = false;
  (stub->async()->*method)(&context, &request, &response, [&](const grpc::Status& is) {
    status = is;
    done = true;
  });
  REQUIRE(RunUntil(world.io, [&] { return done.load(); }));
  return status;
}

using Async = v1::Admin::StubInterface::async_interface;

// A watcher of events, and what it has seen.
class Watcher final : public grpc::ClientReadReactor<v1::Event> {
 public:
  Watcher(ServiceWorld& world, const std::shared_ptr<grpc::Channel>& channel, bool reads = true)
      : world_(world), stub_(v1::Admin::NewStub(channel)), reads_(reads) {
    stub_->async()->WatchEvents(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }
  ~Watcher() override { End(); }

  void OnReadDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (!ok) return;
    seen_.push_back(event_);
    if (reads_) StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard lock(mutex_);
    status_ = status;
    done_ = true;
  }

  bool HasSeen(v1::EventKind kind) {
    const auto has = [&] {
      const std::lock_guard lock(mutex_);
      return done_ || std::any_of(seen_.begin(), seen_.end(), [&](const v1::Event& e) { return e.kind() == kind; });
    };
    REQUIRE(RunUntil(world_.io, has));
    const std::lock_guard lock(mutex_);
    return std::any_of(seen_.begin(), seen_.end(), [&](const v1::Event& e) { return e.kind() == kind; });
  }
  std::vector<v1::EventKind> Kinds() {
    const std::lock_guard lock(mutex_);
    std::vector<v1::EventKind> kinds;
    for (const v1::Event& event : seen_)
      kinds.push_back(event.kind());
    return kinds;
  }
  std::uint64_t Lost() {
    const std::lock_guard lock(mutex_);
    std::uint64_t lost = 0;
    for (const v1::Event& event : seen_)
      lost += event.kind() == v1::EVENT_KIND_LOST ? event.count() : 0;
    return lost;
  }
  // Resumes reading.
  void Read() {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(reads_, true)) return;
    }
    StartRead(&event_);
  }
  // The status with which it ended by itself.
  grpc::Status Ended() {
    REQUIRE(RunUntil(world_.io, [this] { return IsDone(); }));
    return status_;
  }
  void End() {
    context_.TryCancel();
    CHECK(RunUntil(world_.io, [this] { return IsDone(); }));
  }

 private:
  bool IsDone() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  ServiceWorld& world_;
  const std::unique_ptr<v1::Admin::Stub> stub_;
  grpc::ClientContext context_;
  const v1::WatchEventsRequest request_;
  v1::Event event_;
  std::mutex mutex_;
  std::vector<v1::Event> seen_;
  grpc::Status status_;
  bool reads_;
  bool done_ = false;
};

Event EventOf(EventKind kind, std::uint32_t uid, std::uint64_t client_id) {
  Event event;
  event.kind = kind;
  event.uid = uid;
  event.client_id = client_id;
  if (client_id != 0) event.principal = std::make_shared<const Principal>(uid, "container 1");
  return event;
}

}  // namespace

TEST_CASE("two of gRPC's locks in either order do not end the daemon") {
  PrepareGrpc();
  absl::Mutex locks[2];
  for (const int first : {0, 1}) {
    const absl::MutexLock outer(&locks[first]);
    const absl::MutexLock inner(&locks[1 - first]);
  }
}

TEST_CASE("a server without a descriptor for its self-check does not start, and says what to do") {
  const ServiceWorld world;  // has gRPC open what all servers share
  const test::FewDescriptors none(0);
  const auto server = RpcServer::Start({}, [](const std::string&) {});
  REQUIRE_FALSE(server);
  CHECK(server.error().Line().find("raise LimitNOFILE") != std::string::npos);
}

TEST_CASE("a call to an unknown method is refused, and its caller is known") {
  ServiceWorld world;
  const auto channel = world.Connect(false);
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  std::atomic<bool> done = false;
  stub.UnaryCall(&context, "/xschedd.v1.Admin/Nonsense", grpc::StubOptions(), &request, &response,
                 [&](const grpc::Status& is) {
                   status = is;
                   done = true;
                 });
  REQUIRE(RunUntil(world.io, [&] { return done.load(); }));
  CHECK(status.error_code() == grpc::StatusCode::UNIMPLEMENTED);
  const std::lock_guard lock(world.mutex);
  REQUIRE(world.unknown.size() == 2);  // the first was the server's own check of connection names
  const auto caller = world.connections.Find(world.unknown[1], false);
  REQUIRE(caller != nullptr);
  CHECK(caller->peer.pid == ::getpid());
}

TEST_CASE("a call on a forgotten connection is not served") {
  ServiceWorld world;
  const auto channel = world.ConnectUnknown();
  v1::GetPolicyRequest request;
  v1::Policy policy;
  const grpc::Status status = Call(world, channel, &Async::GetPolicy, request, policy);
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(policy.name().empty());
  v1::GetVersionResponse version;
  v1::ListClientsResponse clients;
  v1::ChangeResponse changes;
  v1::Stats stats;
  v1::ExplainResponse explanation;
  v1::GetConfigResponse config;
  for (const grpc::Status& other : {Call(world, channel, &Async::GetVersion, v1::GetVersionRequest(), version),
                                    Call(world, channel, &Async::ListClients, v1::ListClientsRequest(), clients),
                                    Call(world, channel, &Async::Set, v1::SetRequest(), changes),
                                    Call(world, channel, &Async::Hold, v1::HoldRequest(), changes),
                                    Call(world, channel, &Async::Release, v1::ReleaseRequest(), changes),
                                    Call(world, channel, &Async::GetStats, v1::GetStatsRequest(), stats),
                                    Call(world, channel, &Async::Explain, v1::ExplainRequest(), explanation),
                                    Call(world, channel, &Async::GetConfig, v1::GetConfigRequest(), config)})
    CHECK(other.error_code() == grpc::StatusCode::UNAVAILABLE);
  Watcher watcher(world, channel);
  CHECK(watcher.Ended().error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(watcher.Kinds().empty());
}

TEST_CASE("administrators get metrics in the requested format until the daemon stops") {
  ServiceWorld world;
  const auto admin = world.Connect(true);
  v1::GetMetricsRequest request;
  v1::MetricsText text;
  CHECK(Call(world, world.Connect(false), &Async::GetMetrics, request, text).error_code() ==
        grpc::StatusCode::PERMISSION_DENIED);
  REQUIRE(Call(world, admin, &Async::GetMetrics, request, text).ok());
  CHECK(text.text().ends_with("# EOF\n"));
  request.set_format(v1::METRICS_FORMAT_PROMETHEUS);
  REQUIRE(Call(world, admin, &Async::GetMetrics, request, text).ok());
  CHECK_FALSE(text.text().ends_with("# EOF\n"));
  world.metrics.Stop();
  CHECK(Call(world, admin, &Async::GetMetrics, request, text).error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("a watching user sees what concerns it, an administrator everything") {
  ServiceWorld world;
  const bool is_admin = GENERATE(true, false);
  Watcher watcher(world, world.Connect(is_admin));
  REQUIRE(watcher.HasSeen(v1::EVENT_KIND_LIVE));
  const std::uint32_t own = ::geteuid();
  world.core.Events().Add(EventOf(EventKind::kHold, own + 1, 1));
  world.core.Events().Add(EventOf(EventKind::kRefused, own + 1, 0));
  world.core.Events().Add(EventOf(EventKind::kRefused, own, 0));
  world.core.Events().Add(EventOf(EventKind::kPolicy, 0, 0));
  world.core.Events().Add(EventOf(EventKind::kReloaded, 0, 0));
  world.core.Events().Add(EventOf(EventKind::kRelease, own, 2));
  REQUIRE(watcher.HasSeen(v1::EVENT_KIND_RELEASE));
  const std::vector<v1::EventKind> all{v1::EVENT_KIND_LIVE,    v1::EVENT_KIND_HOLD,   v1::EVENT_KIND_REFUSED,
                                       v1::EVENT_KIND_REFUSED, v1::EVENT_KIND_POLICY, v1::EVENT_KIND_RELOADED,
                                       v1::EVENT_KIND_RELEASE};
  const std::vector<v1::EventKind> owns{v1::EVENT_KIND_LIVE, v1::EVENT_KIND_POLICY, v1::EVENT_KIND_RELOADED,
                                        v1::EVENT_KIND_RELEASE};
  CHECK(watcher.Kinds() == (is_admin ? all : owns));
}

TEST_CASE("unread events are kept within the user's memory quota, and the rest is counted") {
  ServiceWorld world;
  Quota quota = test::SmallQuota();
  quota.memory_kib_per_uid = GENERATE(64, 2);  // 2 KiB hold one event at a time
  world.quotas.SetLimits(quota);
  Watcher watcher(world, world.Connect(false), false);
  REQUIRE(watcher.HasSeen(v1::EVENT_KIND_LIVE));
  // Each is as long as a reason may be; together far more than sockets and gRPC hold.
  Event event = EventOf(EventKind::kPolicy, 0, 0);
  event.text.assign(1'000, 'x');
  for (int i = 0; i < 5'000; ++i)
    world.core.Events().Add(event);
  CHECK(world.quotas.Held(::geteuid(), QuotaKind::kMemory) <= quota.memory_kib_per_uid * 1024);
  watcher.Read();
  REQUIRE(watcher.HasSeen(v1::EVENT_KIND_LOST));
  CHECK(watcher.Lost() > 0);
  CHECK(watcher.Lost() < 5'000);
  watcher.End();
  CHECK(RunUntil(world.io, [&] { return world.quotas.Held(::geteuid(), QuotaKind::kMemory) == 0; }));
}

TEST_CASE("a call's rights depend on its server, whatever the connection is called") {
  ServiceWorld world;
  v1::GetStatsRequest request;
  v1::Stats stats;
  // A connection of admin.sock, by the same name at either server.
  for (const bool at_admins : {true, false}) {
    Pair pair;
    int name = -1;
    world.adopt_instead = [&](int fd) {
      name = fd;
      (at_admins ? world.admin_rpc : world.rpc)->Adopt(fd);
    };
    world.connections.Accept(std::move(pair.ours), true);
    const auto channel = grpc::CreateInsecureChannelFromFd("test", pair.peers.Release());
    const grpc::Status status = Call(world, channel, &Async::GetStats, request, stats);
    INFO(status.error_message());
    CHECK(status.error_code() == (at_admins ? grpc::StatusCode::OK : grpc::StatusCode::UNAVAILABLE));
    REQUIRE(world.connections.Find("fd:" + std::to_string(name), true) != nullptr);
    CHECK(world.connections.Find("fd:" + std::to_string(name), false) == nullptr);
  }
  // A connection of client.sock at the administrators' server.
  Pair pair;
  world.adopt_instead = [&](int fd) { world.admin_rpc->Adopt(fd); };
  world.connections.Accept(std::move(pair.ours), false);
  const auto channel = grpc::CreateInsecureChannelFromFd("test", pair.peers.Release());
  CHECK(Call(world, channel, &Async::GetStats, request, stats).error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("an administrator's call returns once the change is saved, or reports that it is not") {
  const test::Notified notified("100");
  ServiceWorld world;
  world.state.Restore({});
  const auto admin = world.Connect(true);
  v1::SetPolicyRequest request;
  request.set_linger_us(777);
  v1::Policy policy;
  REQUIRE(Call(world, admin, &Async::SetPolicy, request, policy).ok());
  CHECK(policy.not_saved().empty());
  // The writer believes that memory is exhausted.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  request.set_linger_us(778);
  const grpc::Status status = Call(world, admin, &Async::SetPolicy, request, policy);
  v1::DrainResponse drained;
  const grpc::Status drain = Call(world, admin, &Async::Drain, v1::DrainRequest(), drained);
  v1::GetPolicyRequest get;
  v1::Policy seen;
  const grpc::Status got = Call(world, admin, &Async::GetPolicy, get, seen);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  ::signal(SIGXFSZ, handler);
  CHECK(status.ok());
  CHECK(policy.linger_us() == 778);
  CHECK(policy.not_saved().find("cannot write the state: ") == 0);
  CHECK(drain.ok());
  CHECK(drained.not_saved().find("cannot write the state: ") == 0);
  CHECK(got.ok());
  CHECK(seen.not_saved().empty());  // nothing changed
  request.set_linger_us(779);
  REQUIRE(Call(world, admin, &Async::SetPolicy, request, policy).ok());
  CHECK(policy.not_saved().empty());
}
