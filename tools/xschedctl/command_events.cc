// `xschedctl events`: the daemon's log of what happened and why.
#include <memory>

#include "tools/xschedctl/client_filter.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/event_stream.h"
#include "tools/xschedctl/pager.h"
#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {
namespace {

struct EventsOptions {
  SelectorOptions selector;
  bool follow = false;
  bool replay = false;
};

Outcome<ExitCode> Events(const EventsOptions& options, const GlobalOptions& global) {
  const Result<v1::Selector> chosen = ParseSelector(options.selector, WhenEmpty::kMeansAll);
  if (!chosen) return UsageFailure(chosen.error());
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  ClientFilter filter(*client, *chosen);
  std::string remembered;  // printed in one piece
  EventStream stream(*client, options.replay || !options.follow);
  const auto limit =
      options.follow ? std::nullopt : std::optional<std::chrono::milliseconds>(EventStream::kReplayLimit);
  for (;;) {
    const auto wait = stream.Next(limit);
    if (wait == EventStream::Wait::kEnded) break;
    if (wait == EventStream::Wait::kQuiet) {
      return tl::unexpected<Failure>(
          {ExitCode::kTimeout, {"the daemon did not send all its events within 5 s", "check whether it is stopped"}});
    }
    if (stream.Event().kind() == v1::EVENT_KIND_LIVE) {
      if (options.follow) continue;
      Page(remembered, global);
      return ExitCode::kOk;
    }
    if (!filter.Fits(stream.Event())) continue;
    const std::string text = global.json ? Document("event", ToJson(stream.Event())) : RenderEvent(stream.Event());
    if (options.follow) {
      Print(text);
    } else {
      remembered += text;
    }
  }
  return tl::unexpected<Failure>(stream.Finish());
}

}  // namespace

Command AddEvents(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command =
      program.AddCommand("events", "Show what happened and why; without --follow: what the daemon remembers");
  auto options = std::make_shared<EventsOptions>();
  AddSelectorOptions(command, options->selector);
  command.AddFlag("--follow,-f", options->follow, "show what happens from now on, until interrupted");
  command.AddFlag("--replay", options->replay, "with --follow: begin with what the daemon remembers");
  return {&command, [=, &global] { return Events(*options, global); }};
}

}  // namespace xschedd::ctl
