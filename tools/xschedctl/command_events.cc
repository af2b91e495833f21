// `xschedctl events`: the daemon's log of what happened and why.
#include <chrono>
#include <memory>

#include "common/clock.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {
namespace {

// The stream has no mark for "this was the last remembered event": it is over when an event is newer than our call, or
// when nothing came for this long.
constexpr std::chrono::milliseconds kQuietTime{250};

struct EventsOptions {
  bool follow = false;
  bool replay = false;
};

// Reads with a completion queue, because only that can wait for the next event with a time limit.
class EventReader {
 public:
  EventReader(AdminClient& client, bool replay) {
    v1::WatchEventsRequest request;
    request.set_replay(replay);
    reader_ = client.stub().PrepareAsyncWatchEvents(&context_, request, &queue_);
    reader_->StartCall(this);
    is_open_ = Await(std::chrono::seconds(5)) == Wait::kDone;
  }
  ~EventReader() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  enum class Wait { kDone, kEnded, kQuiet };

  // `limit` zero: wait as long as it takes.
  Wait Next(v1::Event* event, std::chrono::milliseconds limit) {
    if (!is_open_) return Wait::kEnded;
    reader_->Read(event, this);
    return Await(limit);
  }

  // Why the stream ended; only after kEnded.
  grpc::Status Finish() {
    grpc::Status status;
    reader_->Finish(&status, this);
    return Await(std::chrono::seconds(5)) == Wait::kQuiet ? grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "")
                                                          : status;
  }

 private:
  Wait Await(std::chrono::milliseconds limit) {
    void* tag = nullptr;
    bool ok = false;
    const auto deadline =
        limit.count() == 0 ? std::chrono::system_clock::time_point::max() : std::chrono::system_clock::now() + limit;
    const auto next = queue_.AsyncNext(&tag, &ok, deadline);
    if (next == grpc::CompletionQueue::TIMEOUT) return Wait::kQuiet;
    return next == grpc::CompletionQueue::GOT_EVENT && ok ? Wait::kDone : Wait::kEnded;
  }

  // The queue goes last: it must not see its calls die before it is drained.
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::Event>> reader_;
  bool is_open_ = false;
};

Outcome<ExitCode> Events(const EventsOptions& options, const GlobalOptions& global) {
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const std::uint64_t called_ns = MonotonicNs();
  // Before the reader, so that it outlives a Read that is still under way when we stop.
  const auto event = std::make_unique<v1::Event>();
  EventReader reader(*client, options.replay || !options.follow);
  for (;;) {
    const auto wait = reader.Next(event.get(), options.follow ? std::chrono::milliseconds(0) : kQuietTime);
    if (wait == EventReader::Wait::kQuiet) return ExitCode::kOk;
    if (wait == EventReader::Wait::kEnded) break;
    if (!options.follow && event->time_ns() > called_ns) return ExitCode::kOk;
    Print(global.json ? Line(ToJson(*event)) : RenderEvent(*event));
  }
  const grpc::Status status = reader.Finish();
  if (status.ok() && !options.follow) return ExitCode::kOk;
  if (status.ok()) {
    return tl::unexpected<Failure>(
        {ExitCode::kNoDaemon, {"the daemon ended the stream", "see whether it was stopped"}});
  }
  return tl::unexpected<Failure>(client->Explain(status));
}

}  // namespace

Command AddEvents(CLI::App& app, const GlobalOptions& global) {
  CLI::App* const command =
      app.add_subcommand("events", "Show what happened and why; alone: what the daemon remembers");
  auto options = std::make_shared<EventsOptions>();
  command->add_flag("--follow,-f", options->follow, "show what happens from now on, until interrupted");
  command->add_flag("--replay", options->replay, "with --follow: first what the daemon remembers");
  return {command, [=, &global] { return Events(*options, global); }};
}

}  // namespace xschedd::ctl
