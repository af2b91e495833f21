#include "client-shim/core/session/grpc_stream.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "session.grpc.pb.h"

namespace xschedd::shim {
namespace {

// A stopped daemon reads no messages. What waits in the agent instead is joined (state_reports.h).
constexpr std::size_t kMaxUnwritten = 64;

struct ToProto {
  v1::ClientMessage* out;
  void operator()(const HelloMessage& message) const {
    v1::Hello* hello = out->mutable_hello();
    hello->set_client_version(XSCHEDD_VERSION);
    hello->set_token(message.token);
    hello->set_group(message.group);
    if (message.priority) hello->set_priority_hint(*message.priority);
    hello->set_runtime(message.runtime);
    hello->set_route(message.route);
    if (message.weight) hello->set_weight(*message.weight);
    if (message.deadline_us) hello->set_deadline_us(*message.deadline_us);
    hello->set_latency(message.latency);
    hello->set_memory_limit(message.memory_limit);
  }
  void operator()(const DeviceMessage& message) const {
    v1::DeviceAttached* device = out->mutable_device_attached();
    device->set_slot(message.slot);
    device->set_pci_address(message.pci_address);
    device->set_name(message.name);
    device->set_compute_units(message.compute_units);
    device->set_vendor(message.vendor);
    device->set_uuid(message.uuid);
    device->set_is_under_mps(message.is_under_mps);
  }
  void operator()(const QueueCreatedMessage& message) const {
    v1::QueueCreated* queue = out->mutable_queue_created();
    queue->set_queue(message.queue);
    queue->set_slot(message.slot);
    queue->set_native_priority(message.native_priority);
    queue->set_flags(message.flags);
  }
  void operator()(const QueueDestroyedMessage& message) const {
    out->mutable_queue_destroyed()->set_queue(message.queue);
  }
  void operator()(const HintMessage& message) const {
    v1::Hint* hint = out->mutable_hint();
    if (message.priority) hint->set_priority(*message.priority);
    if (message.weight) hint->set_weight(*message.weight);
    if (message.deadline_us) hint->set_deadline_us(*message.deadline_us);
    if (message.queue) hint->set_queue(*message.queue);
  }
  void operator()(const ActivityMessage& message) const {
    v1::ActivityBatch* batch = out->mutable_activity();
    batch->set_time_ns(message.time_ns);
    for (const ActivityMessage::Queue& queue : message.queues) {
      v1::ActivityBatch::Queue* entry = batch->add_queues();
      entry->set_queue(queue.queue);
      entry->set_slot(queue.slot);
      entry->set_launches(queue.launches);
      entry->set_completions(queue.completions);
    }
    for (const auto& [rule, count] : message.passed) {
      v1::ActivityBatch::Passed* entry = batch->add_passed();
      entry->set_rule(rule);
      entry->set_count(count);
    }
  }
  void operator()(const QueuePrioritiesMessage& message) const {
    v1::QueuePriorities* priorities = out->mutable_queue_priorities();
    priorities->set_priority(message.priority == QueuePriority::kHigh  ? v1::QUEUE_PRIORITY_HIGH
                             : message.priority == QueuePriority::kLow ? v1::QUEUE_PRIORITY_LOW
                                                                       : v1::QUEUE_PRIORITY_UNSPECIFIED);
    priorities->set_queues(message.report.queues);
    priorities->set_in_force(message.report.in_force);
  }
};

SessionConfiguration FromProto(const v1::Configuration& proto) {
  SessionConfiguration configuration;
  configuration.passthrough.assign(proto.passthrough().begin(), proto.passthrough().end());
  configuration.activity_interval_ms = proto.activity_interval_ms();
  // One that this client does not know is the program's.
  if (proto.queue_priority() == v1::QUEUE_PRIORITY_HIGH) configuration.queue_priority = QueuePriority::kHigh;
  if (proto.queue_priority() == v1::QUEUE_PRIORITY_LOW) configuration.queue_priority = QueuePriority::kLow;
  return configuration;
}

}  // namespace

struct GrpcStream::State {
  std::atomic<bool> is_done{false};
  // seq_cst, both: the agent sets is_room_wanted and then reads the count again; the writer lowers the count and then
  // reads is_room_wanted. One of the two sees the other.
  std::atomic<std::size_t> unwritten{0};
  std::atomic<bool> is_room_wanted{false};
  std::unique_ptr<Reactor> reactor;  // used on the GrpcThread only
};

class GrpcStream::Reactor : public grpc::ClientBidiReactor<v1::ClientMessage, v1::DaemonMessage> {
 public:
  Reactor(UniqueFd socket, Deliver deliver, State* state)
      : deliver_(std::move(deliver)),
        state_(state),
        channel_(grpc::CreateInsecureChannelFromFd("xschedd", socket.Release())),
        stub_(v1::ClientSession::NewStub(channel_)) {
    stub_->async()->Session(&context_, this);
    AddHold();  // because Send is called outside of reactions
    StartRead(&incoming_);
    StartCall();
  }

  void Send(const OutgoingMessage& message) {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return;
    std::visit(ToProto{&queue_.emplace_back()}, message);
    if (!is_writing_) WriteNext();
  }

  void Cancel() { context_.TryCancel(); }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.pop_front();
      is_writing_ = false;
      if (ok && !is_closed_ && !queue_.empty()) WriteNext();
    }
    if (state_->unwritten.fetch_sub(1) - 1 <= kMaxUnwritten / 2 && state_->is_room_wanted.exchange(false))
      deliver_(RoomMessage{});
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      // The daemon has gone or has closed the stream. OnDone is called only once the hold is removed.
      {
        const std::lock_guard lock(mutex_);
        is_closed_ = true;
      }
      RemoveHold();
      return;
    }
    switch (incoming_.message_case()) {
      case v1::DaemonMessage::kWelcome: {
        const v1::Welcome& welcome = incoming_.welcome();
        deliver_(WelcomeMessage{welcome.client_id(), welcome.effective_priority(), FromProto(welcome.configuration()),
                                welcome.monotonic_ns()});
        break;
      }
      case v1::DaemonMessage::kNotice:
        deliver_(NoticeMessage{incoming_.notice().text()});
        break;
      case v1::DaemonMessage::kConfiguration:
        deliver_(FromProto(incoming_.configuration()));
        break;
      case v1::DaemonMessage::MESSAGE_NOT_SET:
        break;  // of a newer daemon
    }
    StartRead(&incoming_);
  }

  void OnDone(const grpc::Status& status) override {
    EndMessage end;
    end.reason = status.error_message();
    end.is_refusal = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
                     status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
                     status.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
                     status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
    deliver_(end);
    // release: all uses of this object are before it. From now on, the agent may free it.
    state_->is_done.store(true, std::memory_order_release);
  }

 private:
  void WriteNext() {
    is_writing_ = true;
    StartWrite(&queue_.front());
  }

  const Deliver deliver_;
  State* const state_;  // owns this object
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ClientSession::Stub> stub_;
  grpc::ClientContext context_;
  v1::DaemonMessage incoming_;  // gRPC's between StartRead and OnReadDone
  std::mutex mutex_;
  std::deque<v1::ClientMessage> queue_;  // its front is being written while is_writing_
  bool is_writing_ = false;
  bool is_closed_ = false;
};

std::unique_ptr<GrpcStream> GrpcStream::Make(GrpcThread* thread, UniqueFd socket, Deliver deliver) {
  std::unique_ptr<GrpcStream> stream(new GrpcStream(thread));
  const auto start = [state = stream->state_, deliver = std::move(deliver)](UniqueFd fd) {
    state->reactor = std::make_unique<Reactor>(std::move(fd), deliver, state.get());
  };
  if (!thread->PostSocket(std::move(socket), start)) return nullptr;
  return stream;
}

GrpcStream::GrpcStream(GrpcThread* thread) : thread_(thread), state_(std::make_shared<State>()) {}

GrpcStream::~GrpcStream() {
  thread_->Post([state = state_] { state->reactor.reset(); });
}

void GrpcStream::Send(const OutgoingMessage& message) {
  ++state_->unwritten;
  thread_->Post([state = state_, message] { state->reactor->Send(message); });
}

bool GrpcStream::HasRoom() {
  if (state_->unwritten.load() < kMaxUnwritten) return true;
  state_->is_room_wanted.store(true);
  return state_->unwritten.load() < kMaxUnwritten;
}

void GrpcStream::Cancel() {
  thread_->Post([state = state_] { state->reactor->Cancel(); });
}

bool GrpcStream::IsDone() const {
  // acquire: see OnDone.
  return state_->is_done.load(std::memory_order_acquire);
}

}  // namespace xschedd::shim
