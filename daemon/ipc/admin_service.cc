#include "daemon/ipc/admin_service.h"

#include <deque>

#include "common/clock.h"
#include "daemon/ipc/conversion.h"

namespace xschedd {
namespace {

// A watcher that reads more slowly than things happen loses events beyond this many, and is told how many.
constexpr std::size_t kMaxWaiting = 8192;

}  // namespace

grpc::Status AdminService::Authorise(Host& host, const std::string& peer, Actor& by) {
  const std::shared_ptr<Connection> connection = host.connections.Find(peer);
  if (connection == nullptr) return {grpc::StatusCode::UNAVAILABLE, "the connection is closed already"};
  by = {static_cast<std::uint64_t>(connection->peer.pid), connection->peer.uid};
  if (connection->is_admin) return grpc::Status::OK;
  host.core.Refused("pid " + std::to_string(by.pid) + " (uid " + std::to_string(by.uid) +
                    ") asked for administration on client.sock");
  return {grpc::StatusCode::PERMISSION_DENIED,
          "client.sock does not serve Admin; connect to admin.sock, as root or as a member of group xschedd"};
}

// One WatchEvents call. Constructed on a gRPC thread; all else on the daemon's one thread.
class EventWatcher final : public grpc::ServerWriteReactor<v1::Event>, public EventSink {
 public:
  EventWatcher(Host& host, std::string peer, bool replay) : host_(host) {
    host_.Post([this, peer = std::move(peer), replay] { Begin(peer, replay); });
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
    if (waiting_.size() >= kMaxWaiting) {
      ++lost_;
      return;
    }
    v1::Event message;
    FillEvent(event, message);
    Queue(std::move(message));
  }

 private:
  void Begin(const std::string& peer, bool replay) {
    Actor by;
    if (grpc::Status status = AdminService::Authorise(host_, peer, by); !status.ok()) return End(status);
    if (ended_) return;
    // Headers at once, so that a caller knows that it watches before anything happens.
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

  void Queue(v1::Event message) {
    waiting_.push_back(std::move(message));
    if (!writing_) WriteNext();
  }

  void WriteNext() {
    if (ended_ || waiting_.empty()) return;
    writing_ = true;
    StartWrite(&waiting_.front());
  }

  void HandleWritten(bool ok) {
    writing_ = false;
    waiting_.pop_front();
    if (!ok) return End(grpc::Status::CANCELLED);
    // Where events were left out, in order: after all that was kept before them.
    if (lost_ != 0 && waiting_.size() < kMaxWaiting) {
      v1::Event lost;
      lost.set_kind(v1::EVENT_KIND_LOST);
      lost.set_time_ns(waiting_.empty() ? 0 : waiting_.back().time_ns());
      lost.set_count(std::exchange(lost_, 0));
      waiting_.push_back(std::move(lost));
    }
    WriteNext();
  }

  void End(const grpc::Status& status) {
    if (ended_) return;
    ended_ = true;
    if (subscribed_) host_.core.Events().Unsubscribe(this);
    Finish(status);
  }

  Host& host_;
  std::deque<v1::Event> waiting_;  // the first is being written while writing_
  std::uint64_t lost_ = 0;
  bool writing_ = false;
  bool subscribed_ = false;
  bool ended_ = false;
};

grpc::ServerWriteReactor<v1::Event>* AdminService::WatchEvents(grpc::CallbackServerContext* context,
                                                               const v1::WatchEventsRequest* request) {
  return new EventWatcher(host_, context->peer(), request->replay());
}

}  // namespace xschedd
