#include "tools/xschedctl/event_stream.h"

#include "tools/xschedctl/admin_connection.h"

namespace xschedd::ctl {
namespace {

constexpr std::chrono::seconds kAnswerLimit{5};

}  // namespace

// Uses a completion queue, because only that can wait for the next event with a time limit.
struct EventStream::Call {
  // Declared first, so destroyed last: the queue outlives its calls.
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReader<v1::Event>> reader;
};

EventStream::EventStream(AdminClient& client, bool replay)
    : connection_(*client.connection_), call_(std::make_unique<Call>()) {
  v1::WatchEventsRequest request;
  request.set_replay(replay);
  call_->reader = connection_.stub->PrepareAsyncWatchEvents(&call_->context, request, &call_->queue);
  call_->reader->StartCall(this);
  is_open_ = Await(kAnswerLimit) == Wait::kEvent;
}

EventStream::~EventStream() {
  call_->context.TryCancel();
  call_->queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (call_->queue.Next(&tag, &ok)) {
  }
}

EventStream::Wait EventStream::Next(std::optional<std::chrono::milliseconds> limit) {
  if (!is_open_) return Wait::kEnded;
  // After kQuiet the read that was started is still pending.
  if (!is_reading_) call_->reader->Read(&event_, this);
  is_reading_ = true;
  const Wait wait = Await(limit);
  is_reading_ = wait == Wait::kQuiet;
  is_open_ = wait != Wait::kEnded;
  return wait;
}

Failure EventStream::Finish() {
  grpc::Status status;
  call_->reader->Finish(&status, this);
  if (Await(kAnswerLimit) == Wait::kQuiet) status = grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "");
  if (!status.ok()) return connection_.Explain(status);
  return {ExitCode::kNoDaemon, {"the daemon ended the stream", "check whether it was stopped"}};
}

EventStream::Wait EventStream::Await(std::optional<std::chrono::milliseconds> limit) {
  void* tag = nullptr;
  bool ok = false;
  const auto deadline =
      limit ? std::chrono::system_clock::now() + *limit : std::chrono::system_clock::time_point::max();
  const auto next = call_->queue.AsyncNext(&tag, &ok, deadline);
  if (next == grpc::CompletionQueue::TIMEOUT) return Wait::kQuiet;
  return next == grpc::CompletionQueue::GOT_EVENT && ok ? Wait::kEvent : Wait::kEnded;
}

}  // namespace xschedd::ctl
