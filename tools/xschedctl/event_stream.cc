#include "tools/xschedctl/event_stream.h"

namespace xschedd::ctl {
namespace {

constexpr std::chrono::seconds kAnswerLimit{5};

}  // namespace

// With a completion queue, because only that can wait for the next event with a time limit.
EventStream::EventStream(AdminClient& client, bool replay) {
  v1::WatchEventsRequest request;
  request.set_replay(replay);
  reader_ = client.stub().PrepareAsyncWatchEvents(&context_, request, &queue_);
  reader_->StartCall(this);
  is_open_ = Await(kAnswerLimit) == Wait::kEvent;
}

EventStream::~EventStream() {
  context_.TryCancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

EventStream::Wait EventStream::Next(std::optional<std::chrono::milliseconds> limit) {
  if (!is_open_) return Wait::kEnded;
  // After a quiet time the read that began then is still under way.
  if (!is_reading_) reader_->Read(&event_, this);
  is_reading_ = true;
  const Wait wait = Await(limit);
  is_reading_ = wait == Wait::kQuiet;
  is_open_ = wait != Wait::kEnded;
  return wait;
}

grpc::Status EventStream::Finish() {
  grpc::Status status;
  reader_->Finish(&status, this);
  return Await(kAnswerLimit) == Wait::kQuiet ? grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "") : status;
}

EventStream::Wait EventStream::Await(std::optional<std::chrono::milliseconds> limit) {
  void* tag = nullptr;
  bool ok = false;
  const auto deadline =
      limit ? std::chrono::system_clock::now() + *limit : std::chrono::system_clock::time_point::max();
  const auto next = queue_.AsyncNext(&tag, &ok, deadline);
  if (next == grpc::CompletionQueue::TIMEOUT) return Wait::kQuiet;
  return next == grpc::CompletionQueue::GOT_EVENT && ok ? Wait::kEvent : Wait::kEnded;
}

}  // namespace xschedd::ctl
