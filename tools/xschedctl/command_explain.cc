// `xschedctl explain`: why a client had to wait, and what would change it.
#include <memory>

#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/duration_option.h"
#include "tools/xschedctl/pager.h"
#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {
namespace {

struct ExplainOptions {
  SelectorOptions selector;
  DurationOption duration;
};

constexpr std::uint32_t kLookBackSeconds = 10;

// Pids alone are passed on unchecked, so that a client that has ended can be explained, too.
Outcome<std::vector<std::uint64_t>> Chosen(const v1::Selector& selector, AdminClient& client) {
  v1::Selector others = selector;
  others.clear_pid();
  if (others.ByteSizeLong() == 0) return std::vector<std::uint64_t>(selector.pid().begin(), selector.pid().end());
  v1::ListClientsRequest request;
  *request.mutable_selector() = selector;
  const auto answer = client.Call(request);
  if (!answer) return tl::unexpected<Failure>(answer.error());
  std::vector<std::uint64_t> pids;
  for (const v1::Client& one : answer->clients())
    pids.push_back(one.pid());
  if (!pids.empty()) return pids;
  return tl::unexpected<Failure>(
      {ExitCode::kNoClient, {"no client matches", "xschedctl ps lists the connected clients"}});
}

Outcome<ExitCode> Explain(const ExplainOptions& options, const GlobalOptions& global) {
  const Result<v1::Selector> selector = ParseSelector(options.selector, WhenEmpty::kIsError);
  if (!selector) return UsageFailure(selector.error());
  const Result<std::uint32_t> seconds = options.duration.Seconds(kLookBackSeconds);
  if (!seconds) return UsageFailure(seconds.error());
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) return tl::unexpected<Failure>(client.error());
  const auto pids = Chosen(*selector, *client);
  if (!pids) return tl::unexpected<Failure>(pids.error());
  std::string text;
  for (const std::uint64_t pid : *pids) {
    v1::ExplainRequest request;
    request.set_pid(pid);
    request.set_seconds(*seconds);
    const auto answer = client->Call(request);
    if (!answer) return tl::unexpected<Failure>(answer.error());
    if (!text.empty() && !global.json) text += "\n";
    text += global.json ? Document("explain", ToJson(pid, *answer)) : RenderExplain(pid, *answer, global.Style());
  }
  Page(text, global);
  return ExitCode::kOk;
}

}  // namespace

Command AddExplain(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command =
      program.AddCommand("explain", "Show when clients were held, for which client, by which rule, and what to change");
  auto options = std::make_shared<ExplainOptions>();
  AddSelectorOptions(command, options->selector);
  AddDurationOption(command, options->duration, "how far to look back; 0: all that is remembered (default 10s)");
  return {&command, [=, &global] { return Explain(*options, global); }};
}

}  // namespace xschedd::ctl
