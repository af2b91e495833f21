#include "daemon/admin/admin_service.h"

#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "admin.grpc.pb.h"
#include "common/clock.h"
#include "daemon/admin/conversion.h"
#include "daemon/admin/rights.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

// While this many events wait for a slow watcher, further ones are dropped; a LOST event says how many.
constexpr std::size_t kMaxWaitingEvents = 8192;

// `rpc`: its name in admin.proto.
grpc::Status Authorise(Host& host, bool is_admin, const std::string& peer, const std::string& rpc, Actor& by) {
  const std::shared_ptr<Connection> connection = host.connections.Find(peer, is_admin);
  if (connection == nullptr) return {grpc::StatusCode::UNAVAILABLE, "the connection is closed already"};
  by = {static_cast<std::uint64_t>(connection->peer.pid), connection->peer.uid, is_admin,
        MayRaise(connection->peer, connection->origin, host.core.Groups()),
        MayReadAll(connection->peer, connection->origin, host.core.Groups())};
  by.login_uid = connection->login_uid;
  by.claim = host.core.ClaimOf(connection->origin);
  by.place = PlaceWithClaim(connection->origin.claim_socket, by.claim, connection->origin.place);
  if (by.is_admin) return grpc::Status::OK;
  if (!connection->refusal.ok()) return connection->refusal;
  connection->last_call_ns = MonotonicNs();
  connection->Charge(cost::kCallNs);
  const auto refuse = [&](grpc::StatusCode code, const std::string& why) {
    // Every refusal is answered; only the first for each call of a connection is logged.
    if (connection->refused_calls.insert(rpc).second) {
      host.core.Refused(PrincipalOf(by), ProcessText(by.pid, by.uid) + " called " + rpc + " on client.sock: " + why);
    } else {
      host.core.CountRefused();
    }
    return grpc::Status(code, why);
  };
  if (!host.quotas.Has(PrincipalOf(by), QuotaKind::kCalls, connection->last_call_ns)) {
    host.quotas.CountRefusal(QuotaKind::kCalls);
    return refuse(grpc::StatusCode::RESOURCE_EXHAUSTED, host.quotas.Reason(PrincipalOf(by), QuotaKind::kCalls));
  }
  host.quotas.Charge(PrincipalOf(by), QuotaKind::kCalls, 1);
  const Right right = RightOnClientSocket(rpc);
  if (right == Right::kReaders && !by.may_read_all)
    return refuse(grpc::StatusCode::PERMISSION_DENIED, RefusalText(rpc));
  if (right == Right::kRefused) return refuse(grpc::StatusCode::PERMISSION_DENIED, RefusalText(rpc));
  if (right == Right::kOwnClients && IsNobody(by.uid)) {
    return refuse(grpc::StatusCode::PERMISSION_DENIED,
                  "uid " + std::to_string(by.uid) +
                      " may stand for several users, which the user namespace of xschedd does not map; use admin.sock, "
                      "or run xschedd outside that namespace");
  }
  return grpc::Status::OK;
}

// One WatchEvents call. The constructor runs on a gRPC thread, everything else on the daemon's one thread.
class EventWatcher final : public grpc::ServerWriteReactor<v1::Event>, public EventSink {
 public:
  EventWatcher(Host& host, bool is_admin, std::string peer, bool replay) : host_(host) {
    host_.Post([this, is_admin, peer = std::move(peer), replay] { Begin(is_admin, peer, replay); });
  }

  void OnWriteDone(bool ok) override {
    host_.Post([this, ok] { HandleWritten(ok); });
  }
  void OnCancel() override {
    host_.Post([this] { End(grpc::Status::CANCELLED); });
  }
  void OnDone() override {
    host_.Post([this] { delete this; });
  }

  void OnEvent(const Event& event) override {
    if (!MayBeShown(event)) return;
    if (waiting_.size() >= kMaxWaitingEvents) {
      ++lost_;
      return;
    }
    v1::Event message;
    FillEvent(event, message);
    const std::uint64_t cost = by_.is_admin ? 0 : sizeof message + message.ByteSizeLong();
    if (!memory_.Add(cost)) {
      ++lost_;
      return;
    }
    Queue(std::move(message), cost);
  }

 private:
  // Runs first in the daemon's loop.
  void Begin(bool is_admin, const std::string& peer, bool replay) {
    if (grpc::Status status = Authorise(host_, is_admin, peer, "WatchEvents", by_); !status.ok()) return End(status);
    caller_ = PrincipalOf(by_);
    if (!by_.is_admin) {
      watchers_ = Quotas::Holding(host_.quotas, PrincipalOf(by_), QuotaKind::kWatchers);
      memory_ = Quotas::Holding(host_.quotas, PrincipalOf(by_), QuotaKind::kMemory);
      if (!watchers_.Add()) {
        const std::string why = host_.quotas.Reason(PrincipalOf(by_), QuotaKind::kWatchers);
        host_.core.Refused(PrincipalOf(by_), ProcessText(by_.pid, by_.uid) + ": " + why);
        return End({grpc::StatusCode::RESOURCE_EXHAUSTED, why});
      }
    }
    connection_ = host_.connections.Find(peer, is_admin);
    ++connection_->calls;
    // Headers at once, so that a caller knows that it is watching before the first event.
    StartSendInitialMetadata();
    if (replay) {
      for (const Event& event : host_.core.Events().Remembered())
        OnEvent(event);
    }
    v1::Event live;
    live.set_kind(v1::EVENT_KIND_LIVE);
    live.set_time_ns(MonotonicNs());
    Queue(std::move(live));
    host_.core.Events().Subscribe(this);
    subscribed_ = true;
  }

  // A user sees events of its own clients, and what an administrator changes for all.
  bool MayBeShown(const Event& event) const {
    if (by_.is_admin || by_.may_read_all) return true;
    if (event.principal != nullptr) return MayManage(caller_, event.uid, *event.principal);
    return event.kind == EventKind::kPolicy || event.kind == EventKind::kReloaded;
  }

  // `cost`: how much memory_ counts for it.
  void Queue(v1::Event message, std::uint64_t cost = 0) {
    waiting_.push_back({std::move(message), cost});
    if (!writing_) WriteNext();
  }

  void WriteNext() {
    if (ended_ || waiting_.empty()) return;
    writing_ = true;
    StartWrite(&waiting_.front().message);
  }

  void HandleWritten(bool ok) {
    writing_ = false;
    memory_.Remove(waiting_.front().cost);
    waiting_.pop_front();
    if (!ok) return End(grpc::Status::CANCELLED);
    // Reports dropped events where they are missing: after all events that were kept before them.
    if (lost_ != 0) {
      v1::Event lost;
      lost.set_kind(v1::EVENT_KIND_LOST);
      lost.set_time_ns(waiting_.empty() ? 0 : waiting_.back().message.time_ns());
      lost.set_count(std::exchange(lost_, 0));
      waiting_.push_back({std::move(lost), 0});
    }
    WriteNext();
  }

  void End(const grpc::Status& status) {
    if (ended_) return;
    ended_ = true;
    if (subscribed_) host_.core.Events().Unsubscribe(this);
    watchers_.Reset();
    memory_.Reset();
    if (connection_ != nullptr) {
      --connection_->calls;
      connection_->last_call_ns = MonotonicNs();
      connection_.reset();
    }
    Finish(status);
  }

  Host& host_;
  Actor by_;
  Principal caller_;  // as when the call began
  std::shared_ptr<Connection> connection_;
  Quotas::Holding watchers_;
  Quotas::Holding memory_;  // of the events in waiting_
  struct Waiting {
    v1::Event message;
    std::uint64_t cost;
  };
  std::deque<Waiting> waiting_;  // the first is being written while writing_
  std::uint64_t lost_ = 0;
  bool writing_ = false;
  bool subscribed_ = false;
  bool ended_ = false;
};

}  // namespace

// Not in the header, because gRPC's base of a service takes the compiler long in each source that includes it.
class AdminService::Calls final : public v1::Admin::CallbackService {
 public:
  Calls(Host& host, AdminOperations& operations, MetricsCollector& metrics, bool is_admin)
      : host_(host), operations_(operations), metrics_(metrics), is_admin_(is_admin) {}

#define XSCHEDD_UNARY(Name, Request, Response)                                                     \
  grpc::ServerUnaryReactor* Name(grpc::CallbackServerContext* context, const v1::Request* request, \
                                 v1::Response* response) override {                                \
    return Run(context, #Name, request, response, &AdminOperations::Name);                         \
  }
  XSCHEDD_UNARY(GetVersion, GetVersionRequest, GetVersionResponse)
  XSCHEDD_UNARY(ListClients, ListClientsRequest, ListClientsResponse)
  XSCHEDD_UNARY(Set, SetRequest, ChangeResponse)
  XSCHEDD_UNARY(Hold, HoldRequest, ChangeResponse)
  XSCHEDD_UNARY(Release, ReleaseRequest, ChangeResponse)
  XSCHEDD_UNARY(GetCeiling, GetCeilingRequest, GetCeilingResponse)
  XSCHEDD_UNARY(PutClaim, PutClaimRequest, PutClaimResponse)
  XSCHEDD_UNARY(DeleteClaim, DeleteClaimRequest, DeleteClaimResponse)
  XSCHEDD_UNARY(ListClaims, ListClaimsRequest, ListClaimsResponse)
  XSCHEDD_UNARY(ReportClaims, ReportClaimsRequest, ReportClaimsResponse)
  XSCHEDD_UNARY(GetPolicy, GetPolicyRequest, Policy)
  XSCHEDD_UNARY(SetPolicy, SetPolicyRequest, Policy)
  XSCHEDD_UNARY(GetStats, GetStatsRequest, Stats)
  XSCHEDD_UNARY(Explain, ExplainRequest, ExplainResponse)
  XSCHEDD_UNARY(GetConfig, GetConfigRequest, GetConfigResponse)
  XSCHEDD_UNARY(Reload, ReloadRequest, ReloadResponse)
  XSCHEDD_UNARY(Disable, DisableRequest, DisableResponse)
  XSCHEDD_UNARY(Enable, EnableRequest, EnableResponse)
  XSCHEDD_UNARY(Drain, DrainRequest, DrainResponse)
#undef XSCHEDD_UNARY

  // Not in AdminOperations, because it does not answer at once.
  grpc::ServerUnaryReactor* GetMetrics(grpc::CallbackServerContext* context, const v1::GetMetricsRequest* request,
                                       v1::MetricsText* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    host_.Post([this, reactor, request, response, peer = context->peer()] {
      Actor by;
      if (grpc::Status status = Authorise(host_, is_admin_, peer, "GetMetrics", by); !status.ok())
        return reactor->Finish(status);
      const MetricFormat format =
          request->format() == v1::METRICS_FORMAT_PROMETHEUS ? MetricFormat::kPrometheus : MetricFormat::kOpenMetrics;
      ++metrics_.Counts().over_admin_socket;
      metrics_.Collect(format, [reactor, response, format](const MetricsCollector::Text& text) {
        if (text == nullptr)
          return reactor->Finish({grpc::StatusCode::UNAVAILABLE, "the daemon is stopping; try again"});
        response->set_content_type(std::string(ContentType(format)));
        response->set_text(*text);
        reactor->Finish(grpc::Status::OK);
      });
    });
    return reactor;
  }

  grpc::ServerWriteReactor<v1::Event>* WatchEvents(grpc::CallbackServerContext* context,
                                                   const v1::WatchEventsRequest* request) override {
    return new EventWatcher(host_, is_admin_, context->peer(), request->replay());
  }

 private:
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context, const char* rpc, const Request* request,
                                Response* response,
                                grpc::Status (AdminOperations::*operation)(const Actor&, const Request&, Response&)) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    // Request and response live until Finish. `this` is not captured: with -fsanitize=undefined, GCC 12 calls a member
    // pointer on one of its members through a temporary that it never initialises.
    host_.Post([&host = host_, &operations = operations_, is_admin = is_admin_, rpc, reactor, request, response,
                operation, peer = context->peer()] {
      Actor by;
      grpc::Status status = Authorise(host, is_admin, peer, rpc, by);
      if (status.ok()) status = std::invoke(operation, operations, by, *request, *response);
      if constexpr (requires { response->set_not_saved(std::string()); }) {
        // The answer waits until the change is saved: no restart may lose what a caller has been told is in effect.
        host.state.WhenSaved([reactor, response, status](const Result<void>& saved) {
          if (!saved) response->set_not_saved(saved.error().Line());
          reactor->Finish(status);
        });
      } else {
        reactor->Finish(status);
      }
    });
    return reactor;
  }

  Host& host_;
  AdminOperations& operations_;
  MetricsCollector& metrics_;
  const bool is_admin_;
};

AdminService::AdminService(Host& host, AdminOperations& operations, MetricsCollector& metrics, bool is_admin)
    : calls_(std::make_unique<Calls>(host, operations, metrics, is_admin)) {}

AdminService::~AdminService() = default;

grpc::Service& AdminService::Rpc() {
  return *calls_;
}

}  // namespace xschedd
