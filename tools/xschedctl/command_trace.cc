// `xschedctl trace`: records a timeline of clients on their devices, for ui.perfetto.dev.
#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "common/clock.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/duration_option.h"
#include "tools/xschedctl/event_stream.h"
#include "tools/xschedctl/timeline.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

using std::chrono::milliseconds;

// How soon an interrupt is noticed, and a sample is taken when no event comes.
constexpr milliseconds kLongestWait{50};
// After this long without an event, all events from before the end have arrived.
constexpr milliseconds kDrainedAfter{50};
constexpr milliseconds kLiveLimit{5000};
// The interval of samples of work in flight and windows; sampling takes at most a twentieth of the time.
constexpr std::uint64_t kSampleNs = 50'000'000;
constexpr std::uint64_t kSampleShare = 20;

volatile sig_atomic_t interrupted = 0;

void StopOnSignal() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

class Recorder {
 public:
  Recorder(AdminClient& client, std::ofstream& file) : client_(client), file_(file), stream_(client, false) {}

  // `seconds` 0: until interrupted. Once recording has begun, the file is complete JSON even if this fails.
  Outcome<ExitCode> Record(std::uint32_t seconds) {
    if (stream_.Next(kLiveLimit) != EventStream::Wait::kEvent) return tl::unexpected<Failure>(stream_.Finish());
    auto snapshot = client_.Call(v1::ListClientsRequest());
    if (!snapshot) return tl::unexpected<Failure>(snapshot.error());
    start_ns_ = snapshot->time_ns();
    trace_.emplace(file_, start_ns_,
                   Json{{"recorder", "xschedctl " XSCHEDD_VERSION}, {"start_monotonic_ns", start_ns_}});
    timeline_.emplace(*trace_, [this](std::uint64_t pid) { return CommandOf(pid); });
    timeline_->Take(*snapshot);
    file_.flush();  // shows that recording has begun
    const std::uint64_t end = seconds == 0 ? UINT64_MAX : start_ns_ + seconds * std::uint64_t{1'000'000'000};
    Outcome<ExitCode> outcome = Follow(end);
    end_ns_ = std::min(end, MonotonicNs());
    if (outcome) outcome = Drain();
    timeline_->End(end_ns_);
    trace_->Close();
    return outcome;
  }

  std::string Summary(const std::string& path, bool json) const {
    if (json) {
      return Document("trace", {{"file", path},
                                {"duration_ns", end_ns_ - start_ns_},
                                {"clients", timeline_->ClientsSeen()},
                                {"slices", trace_->Slices()}});
    }
    return fmt::format("{}: {}, {}, {}; open it in https://ui.perfetto.dev\n", path, Duration(end_ns_ - start_ns_),
                       Count(timeline_->ClientsSeen(), "client"), Count(trace_->Slices(), "slice"));
  }

 private:
  Outcome<ExitCode> Follow(std::uint64_t end) {
    while (interrupted == 0 && MonotonicNs() < end) {
      const auto left = milliseconds((end - std::min(end, MonotonicNs())) / 1'000'000 + 1);
      const auto wait = stream_.Next(std::min(kLongestWait, left));
      if (wait == EventStream::Wait::kEnded) return tl::unexpected<Failure>(stream_.Finish());
      if (wait == EventStream::Wait::kEvent && stream_.Event().time_ns() < end && !timeline_->Add(stream_.Event())) {
        auto snapshot = client_.Call(v1::ListClientsRequest());
        if (!snapshot) return tl::unexpected<Failure>(snapshot.error());
        timeline_->Take(*snapshot);
      }
      if (const auto sampled = Sample(end); !sampled) return tl::unexpected<Failure>(sampled.error());
    }
    return ExitCode::kOk;
  }

  Outcome<ExitCode> Sample(std::uint64_t end) {
    const std::uint64_t begin = MonotonicNs();
    if (begin < next_sample_ns_) return ExitCode::kOk;
    const auto snapshot = client_.Call(v1::ListClientsRequest());
    if (!snapshot) return tl::unexpected<Failure>(snapshot.error());
    if (snapshot->time_ns() < end) timeline_->Sample(*snapshot);
    next_sample_ns_ = begin + std::max(kSampleNs, (MonotonicNs() - begin) * kSampleShare);
    return ExitCode::kOk;
  }

  // Reads the events from before the end that are still on their way.
  Outcome<ExitCode> Drain() {
    for (;;) {
      const auto wait = stream_.Next(kDrainedAfter);
      if (wait == EventStream::Wait::kEnded) return tl::unexpected<Failure>(stream_.Finish());
      if (wait == EventStream::Wait::kQuiet || stream_.Event().time_ns() >= end_ns_) return ExitCode::kOk;
      if (!timeline_->Add(stream_.Event())) return ExitCode::kOk;
    }
  }

  std::string CommandOf(std::uint64_t pid) {
    v1::ListClientsRequest request;
    request.mutable_selector()->add_pid(pid);
    const auto answer = client_.Call(request);
    return answer && answer->clients_size() > 0 ? answer->clients(0).command() : std::string();
  }

  AdminClient& client_;
  std::ofstream& file_;
  EventStream stream_;
  std::optional<ChromeTrace> trace_;
  std::optional<Timeline> timeline_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t end_ns_ = 0;
  std::uint64_t next_sample_ns_ = 0;
};

Outcome<ExitCode> Trace(const std::string& path, std::uint32_t seconds, const GlobalOptions& global) {
  StopOnSignal();
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  std::ofstream file(path, std::ios::trunc);
  if (!file) {
    return UsageFailure({"cannot write " + path + ": " + std::strerror(errno), "give another file with -o"});
  }
  Recorder recorder(*client, file);
  Outcome<ExitCode> outcome = recorder.Record(seconds);
  if (!outcome) return outcome;
  file.close();
  if (!file) {
    return tl::unexpected<Failure>(
        {ExitCode::kRefused, {"cannot write all of " + path + ": " + std::strerror(errno), "make room, try again"}});
  }
  Print(recorder.Summary(path, global.json));
  return ExitCode::kOk;
}

}  // namespace

Command AddTrace(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("trace", "Record a timeline of all clients for ui.perfetto.dev");
  struct Options {
    std::string path;
    DurationOption duration;
  };
  auto options = std::make_shared<Options>();
  command.AddOption("--output,-o", options->path, "the file to write", {.is_required = true});
  AddDurationOption(command, options->duration, "how long to record; without: until interrupted");
  return {&command, [=, &global]() -> Outcome<ExitCode> {
            const Result<std::uint32_t> seconds = options->duration.Seconds(0);
            if (!seconds) return UsageFailure(seconds.error());
            return Trace(options->path, *seconds, global);
          }};
}

}  // namespace xschedd::ctl
