#include <fmt/format.h>

#include "daemon/config/files.h"
#include "daemon/install_paths.h"
#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/bundle/parts.h"
#include "tools/xschedctl/event_stream.h"
#include "tools/xschedctl/render_config.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

// Makes the calls one after the other. After a timeout or a lost connection it makes no more: each would take its whole
// time limit.
class DaemonQueries {
 public:
  DaemonQueries(AdminClient& client, Parts* parts) : client_(client), parts_(parts) {}

  template <typename Request, typename Show>
  void Ask(const char* name, const Request& request, Show show) {
    if (!stopped_.empty()) return parts_->Miss(name, stopped_);
    const auto answer = client_.Call(request);
    if (answer) return show(*answer);
    NoteFailure(name, answer.error());
  }

  void Events(Redactor* redactor) {
    if (!stopped_.empty()) return parts_->Miss("events.json", stopped_);
    EventStream stream(client_, true);
    std::string text;
    for (;;) {
      const auto wait = stream.Next(EventStream::kReplayLimit);
      if (wait == EventStream::Wait::kEnded) return NoteFailure("events.json", stream.Finish());
      if (wait == EventStream::Wait::kQuiet) return parts_->Miss("events.json", "the daemon did not send them in time");
      if (stream.Event().kind() == v1::EVENT_KIND_LIVE) break;
      Json event = ToJson(stream.Event());
      redactor->Event(&event);
      text += Document("event", event);
    }
    parts_->Add("events.json", text);
  }

 private:
  void NoteFailure(const char* name, const Failure& failure) {
    parts_->Miss(name, failure.error.what);
    if (failure.code == ExitCode::kTimeout || failure.code == ExitCode::kNoDaemon) stopped_ = failure.error.what;
  }

  AdminClient& client_;
  Parts* parts_;
  std::string stopped_;  // why no more calls are made; empty: they are
};

Json ClientsJson(const v1::ListClientsResponse& answer, Redactor* redactor) {
  Json json = ToJson(answer);
  json["unscheduled"] = ToJson(FindUnscheduled(answer));
  redactor->Clients(&json);
  return json;
}

void AddConfigCheck(const std::string& file, Parts* parts) {
  const auto files = ReadConfigFiles(file, false);
  if (!files) return parts->Miss("config-check", files.error().what);
  parts->Add("config-check", RenderErrors(*files, ExamineConfig(*files), TextStyle()));
}

}  // namespace

void AddDaemon(const std::string& runtime_dir, Redactor* redactor, Parts* parts) {
  std::string file = kDefaultConfigPath;
  Outcome<AdminClient> client = AdminClient::Connect(runtime_dir);
  if (!client) {
    parts->Miss("config-show, ps.json, stats.json, policy.json, events.json, metrics", client.error().error.what);
    return AddConfigCheck(file, parts);
  }
  DaemonQueries queries(*client, parts);
  v1::ListClientsRequest everybody;
  everybody.mutable_selector()->set_all(true);
  // First, so that executables keep the numbers that this list gives them.
  queries.Ask("ps.json", everybody, [&](const v1::ListClientsResponse& answer) {
    if (answer.left_out() != 0) parts->Miss("ps.json", Count(answer.left_out(), "client") + " of other users");
    parts->Add("ps.json", Document("ps", ClientsJson(answer, redactor)));
  });
  queries.Ask("config-show", v1::GetConfigRequest(), [&](const v1::GetConfigResponse& answer) {
    if (!answer.file().empty()) file = answer.file();
    parts->Add("config-show", RenderConfig({answer, true}, false, TextStyle()));
  });
  queries.Ask("stats.json", v1::GetStatsRequest(),
              [&](const v1::Stats& answer) { parts->Add("stats.json", Document("stats", ToJson(answer))); });
  queries.Ask("policy.json", v1::GetPolicyRequest(), [&](const v1::Policy& answer) {
    Json json = {{"dry_run", false}};
    json.update(ToJson(answer));
    parts->Add("policy.json", Document("policy", json));
  });
  queries.Ask("metrics", v1::GetMetricsRequest(),
              [&](const v1::MetricsText& answer) { parts->Add("metrics", answer.text()); });
  queries.Events(redactor);
  AddConfigCheck(file, parts);
}

std::string Readme(const Parts& parts, const std::string& when) {
  std::string text = "xschedd support bundle of " + when + "\n\nContents:\n";
  for (const TarEntry& file : parts.files)
    text += "  " + file.name + "\n";
  text +=
      "\nLeft out, because it concerns only the users:\n"
      "  command lines, executables, groups and cgroups of programs: replaced by numbers\n"
      "  values of environment variables: replaced by the variables' names\n"
      "  memory and output of programs: never read\n"
      "Included: pids, uids, the daemon's settings with the names in its rules, paths of libraries, this host's name "
      "in\n"
      "the log. Look through it before you pass it on.\n";
  if (!parts.missing.empty()) text += "\nMissing:\n";
  for (const std::string& line : parts.missing)
    text += "  " + line + "\n";
  return text;
}

}  // namespace xschedd::ctl
