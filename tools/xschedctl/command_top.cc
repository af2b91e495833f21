// `xschedctl top`: shows clients and devices live; keys change clients. With --batch: prints the same screens as text.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>

#include "common/clock.h"
#include "daemon/config/duration.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/event_stream.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/top/terminal.h"
#include "tools/xschedctl/top/view.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

using std::chrono::milliseconds;

// The longest time before a key or an event is noticed.
constexpr milliseconds kTick{50};
// How long events are read before keys are handled; longer at first, when the daemon sends all that it remembers.
constexpr milliseconds kEventTime{100};
constexpr milliseconds kFirstEventTime{2'000};
// Without an event for this long, none is pending.
constexpr milliseconds kQuiet{1};
constexpr std::size_t kBatchHeight = 100'000;
constexpr std::size_t kBatchWidth = 1000;

struct TopOptions {
  SelectorOptions selector;
  std::string delay = "1s";
  std::string sort;
  bool batch = false;
  std::uint32_t frames = 0;  // 0: until interrupted
};

// Gets the data of each screen from the daemon. After a lost connection the next call connects again; the screen shows
// the error meanwhile.
class Source {
 public:
  Source(const GlobalOptions& global, v1::Selector selector) : global_(global) {
    *request_.mutable_selector() = std::move(selector);
  }

  // Fails if no daemon answers.
  Outcome<void> Refresh(TopModel& model) {
    if (client_ == nullptr) {
      Outcome<AdminClient> client = AdminClient::Connect(global_.runtime_dir);
      if (!client) return tl::unexpected<Failure>(client.error());
      client_ = std::make_unique<AdminClient>(std::move(*client));
      events_ = std::make_unique<EventStream>(*client_, true);
      is_live_ = false;
    }
    TakeEvents(model);
    auto answer = client_->Call(request_);
    if (!answer) {
      const Failure failure = answer.error();
      events_.reset();
      client_.reset();
      model.Forget();
      return tl::unexpected<Failure>(failure);
    }
    model.Add(std::move(*answer), ReadDeviceMemory());
    return {};
  }

  // Reads the events that have arrived. A user who may list clients but not watch events sees no P99-HOLD.
  void TakeEvents(TopModel& model) {
    const milliseconds limit = is_live_ ? kEventTime : kFirstEventTime;
    const auto end = std::chrono::steady_clock::now() + limit;
    while (events_ != nullptr && std::chrono::steady_clock::now() < end) {
      const EventStream::Wait wait = events_->Next(is_live_ ? kQuiet : kEventTime);
      if (wait == EventStream::Wait::kQuiet && is_live_) return;
      if (wait == EventStream::Wait::kEvent) {
        is_live_ = is_live_ || events_->Event().kind() == v1::EVENT_KIND_LIVE;
        model.Add(events_->Event());
      } else if (wait == EventStream::Wait::kEnded) {
        events_.reset();
      }
    }
  }

  // Returns the outcome, for the last line of the screen.
  Outcome<std::string> Do(const TopAction& action) {
    if (client_ == nullptr) return tl::unexpected<Failure>({ExitCode::kNoDaemon, {"there is no daemon", "start it"}});
    Outcome<v1::ChangeResponse> answer = Ask(action);
    if (!answer) return tl::unexpected<Failure>(answer.error());
    std::string text;
    for (const auto& change : answer->changes()) {
      text += fmt::format("{}pid {}: priority {}, weight {}{}{}", text.empty() ? "" : "; ", change.pid(),
                          change.priority_after(), change.weight_after(), change.hold_after() ? ", on hold" : "",
                          change.note().empty() ? "" : " (" + change.note() + ")");
    }
    return text;
  }

 private:
  Outcome<v1::ChangeResponse> Ask(const TopAction& action) {
    const auto change = [&](auto request) {
      request.mutable_selector()->add_pid(action.pid);
      return client_->Call(request);
    };
    v1::SetRequest set;
    if (action.kind == TopAction::Kind::kSetPriority) set.set_priority(action.value);
    if (action.kind == TopAction::Kind::kSetWeight) set.set_weight(static_cast<std::uint32_t>(action.value));
    if (action.kind == TopAction::Kind::kHold) return change(v1::HoldRequest());
    if (action.kind == TopAction::Kind::kRelease) return change(v1::ReleaseRequest());
    return change(set);
  }

  const GlobalOptions& global_;
  v1::ListClientsRequest request_;
  std::unique_ptr<AdminClient> client_;
  std::unique_ptr<EventStream> events_;
  bool is_live_ = false;  // all that the daemon remembered has come
};

TopStatus StatusNow(double delay_s, const std::string& error) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<milliseconds>(now).count();
  std::string clock = ClockTime(static_cast<std::uint64_t>(ms));
  clock.resize(std::min<std::size_t>(clock.size(), sizeof "14:03:22" - 1));
  return {clock, error, delay_s};
}

Outcome<ExitCode> Batch(Source& source, TopSort sort, milliseconds delay, std::uint32_t frames, bool with_header) {
  TopModel model;
  TopView view(sort);
  const std::size_t width = TerminalWidth() == 0 ? kBatchWidth : TerminalWidth();
  for (std::uint32_t frame = 0; frames == 0 || frame < frames; ++frame) {
    const auto next = std::chrono::steady_clock::now() + delay;
    while (frame != 0 && std::chrono::steady_clock::now() < next) {
      // The daemon keeps a limited number of events for a watcher that does not read.
      source.TakeEvents(model);
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kTick, next - std::chrono::steady_clock::now()));
    }
    const Outcome<void> fresh = source.Refresh(model);
    if (!fresh) return tl::unexpected<Failure>(fresh.error());
    const std::vector<TopRow> rows = view.RowsOf(model);
    const TopStatus status = StatusNow(static_cast<double>(delay.count()) / 1000, "");
    std::vector<TopLine> lines = view.Compose(model, rows, status, width, kBatchHeight);
    lines.pop_back();  // the keys
    while (!lines.empty() && lines.back().text.empty())
      lines.pop_back();
    std::string text = frame == 0 ? "" : "\n";
    for (TopLine& line : lines) {
      if (!with_header && line.style == TopStyle::kHeader) continue;
      line.text.erase(line.text.find_last_not_of(' ') + 1);
      text += line.text + "\n";
    }
    Print(text);
  }
  return ExitCode::kOk;
}

Outcome<ExitCode> Live(Source& source, TopSort sort, milliseconds delay) {
  TopModel model;
  TopView view(sort);
  // Without a daemon at the start this fails like every command; if the daemon goes away later, `top` waits for it.
  const Outcome<void> first = source.Refresh(model);
  if (!first) return tl::unexpected<Failure>(first.error());
  Result<Terminal> terminal = Terminal::Open();
  if (!terminal) return UsageFailure(terminal.error());

  const double delay_s = static_cast<double>(delay.count()) / 1000;
  std::string error;
  std::uint64_t next_ns = MonotonicNs() + static_cast<std::uint64_t>(delay.count()) * 1'000'000;
  while (!Terminal::IsInterrupted()) {
    const std::vector<TopRow> rows = view.RowsOf(model);
    terminal->Show(view.Compose(model, rows, StatusNow(delay_s, error), terminal->Width(), terminal->Height()));
    const TopAction action = view.Press(terminal->Read(kTick), rows);
    if (action.kind == TopAction::Kind::kQuit) break;
    bool is_due = MonotonicNs() >= next_ns && !view.IsPaused();
    if (action.kind != TopAction::Kind::kNone) {
      const Outcome<std::string> done = source.Do(action);
      view.ShowMessage(done ? *done : done.error().error.Line(), !done.has_value());
      is_due = true;
    }
    if (!is_due) {
      source.TakeEvents(model);
      continue;
    }
    const Outcome<void> fresh = source.Refresh(model);
    error = fresh ? "" : fresh.error().error.Line();
    next_ns = MonotonicNs() + static_cast<std::uint64_t>(delay.count()) * 1'000'000;
  }
  return ExitCode::kOk;
}

}  // namespace

Command AddTop(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command =
      program.AddCommand("top", "Show clients and devices live; keys change them (? lists the keys)");
  auto options = std::make_shared<TopOptions>();
  std::string names;
  for (const TopSort sort : kTopSorts)
    names += (names.empty() ? "" : ", ") + std::string(Name(sort));
  AddSelectorOptions(command, options->selector);
  command.AddOption("--delay", options->delay, "time between updates: 1s, 200ms", {.shows_default = true});
  command.AddOption("--sort", options->sort, "column to sort by: " + names);
  command.AddFlag("--batch", options->batch, "print each update as text; needs no terminal");
  command.AddOption("--frames", options->frames, "with --batch: number of updates; 0: until interrupted");
  return {&command, [=, &global]() -> Outcome<ExitCode> {
            if (global.json) return UsageFailure({"top has no JSON", "use ps --json, events --json or stats --json"});
            const Result<std::uint32_t> delay = ParseMilliseconds(options->delay);
            if (!delay) return UsageFailure(delay.error());
            if (*delay < 100) return UsageFailure({"--delay is too short", "give 100ms or more"});
            if (options->frames != 0 && !options->batch) {
              return UsageFailure({"--frames is for --batch", "give both"});
            }
            TopSort sort = TopSort::kGpu;
            if (!options->sort.empty()) {
              const auto found = std::find_if(std::begin(kTopSorts), std::end(kTopSorts),
                                              [&](TopSort known) { return Name(known) == options->sort; });
              if (found == std::end(kTopSorts)) {
                return UsageFailure({"there is no column \"" + options->sort + "\"", "choose one of " + names});
              }
              sort = *found;
            }
            const Result<v1::Selector> chosen = ParseSelector(options->selector, WhenEmpty::kMeansAll);
            if (!chosen) return UsageFailure(chosen.error());
            Source source(global, *chosen);
            if (options->batch) return Batch(source, sort, milliseconds(*delay), options->frames, !global.no_header);
            return Live(source, sort, milliseconds(*delay));
          }};
}

}  // namespace xschedd::ctl
