#include <fmt/format.h>

#include "daemon/config/files.h"
#include "daemon/install_paths.h"
#include "tools/xschedctl/admin_client.h"
#include "tools/xschedctl/bundle/parts.h"
#include "tools/xschedctl/event_stream.h"
#include "tools/xschedctl/render_config.h"

namespace xschedd::ctl {
namespace {

constexpr std::chrono::seconds kReplayLimit{5};

// Asks one after the other. One that is gone or does not answer is not asked again: each question has its time limit.
class Asker {
 public:
  Asker(AdminClient& client, Parts* parts) : client_(client), parts_(parts) {}

  template <typename Request, typename Show>
  void Ask(const char* name, const Request& request, Show show) {
    if (!silent_.empty()) return parts_->Miss(name, silent_);
    const auto answer = client_.Call(request);
    if (answer) return show(*answer);
    NoAnswer(name, answer.error());
  }

  void Events(Redactor* redactor) {
    if (!silent_.empty()) return parts_->Miss("events.json", silent_);
    EventStream stream(client_, true);
    std::string text;
    for (;;) {
      const auto wait = stream.Next(kReplayLimit);
      if (wait == EventStream::Wait::kEnded) return NoAnswer("events.json", stream.Finish());
      if (wait == EventStream::Wait::kQuiet) return parts_->Miss("events.json", "the daemon did not send them in time");
      if (stream.Event().kind() == v1::EVENT_KIND_LIVE) break;
      Json event = ToJson(stream.Event());
      redactor->Event(&event);
      text += Document("event", event);
    }
    parts_->Add("events.json", text);
  }

 private:
  void NoAnswer(const char* name, const Failure& failure) {
    parts_->Miss(name, failure.error.what);
    if (failure.code == ExitCode::kTimeout || failure.code == ExitCode::kNoDaemon) silent_ = failure.error.what;
  }

  AdminClient& client_;
  Parts* parts_;
  std::string silent_;  // why it is not asked any more
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
  Asker asker(*client, parts);
  v1::ListClientsRequest everybody;
  everybody.mutable_selector()->set_all(true);
  // First: the redactor learns the clients' names from it.
  asker.Ask("ps.json", everybody, [&](const v1::ListClientsResponse& answer) {
    if (answer.left_out() != 0) parts->Miss("ps.json", fmt::format("{} clients of other users", answer.left_out()));
    parts->Add("ps.json", Document("ps", ClientsJson(answer, redactor)));
  });
  asker.Ask("config-show", v1::GetConfigRequest(), [&](const v1::GetConfigResponse& answer) {
    if (!answer.file().empty()) file = answer.file();
    parts->Add("config-show", RenderConfig({answer, true}, false, TextStyle()));
  });
  asker.Ask("stats.json", v1::GetStatsRequest(),
            [&](const v1::Stats& answer) { parts->Add("stats.json", Document("stats", ToJson(answer))); });
  asker.Ask("policy.json", v1::GetPolicyRequest(), [&](const v1::Policy& answer) {
    Json json = {{"dry_run", false}};
    json.update(ToJson(answer));
    parts->Add("policy.json", Document("policy", json));
  });
  asker.Ask("metrics", v1::GetMetricsRequest(),
            [&](const v1::MetricsText& answer) { parts->Add("metrics", answer.text()); });
  asker.Events(redactor);
  AddConfigCheck(file, parts);
}

std::string Readme(const Parts& parts, const std::string& when) {
  std::string text = "xschedd support bundle of " + when + "\n\nIn it:\n";
  for (const TarEntry& file : parts.files)
    text += "  " + file.name + "\n";
  text +=
      "\nLeft out, because it is nobody's concern but the users':\n"
      "  command lines, executables, groups and cgroups of programs: numbers stand for them\n"
      "  values of environment variables: their names stand for them\n"
      "  memory and output of programs: none of it was looked at\n"
      "Not left out: pids, uids, the settings of the daemon with the names in its rules, paths of libraries, the name "
      "of\n"
      "this host in the log. Look through it before you give it away.\n";
  if (!parts.missing.empty()) text += "\nCould not be had:\n";
  for (const std::string& line : parts.missing)
    text += "  " + line + "\n";
  return text;
}

}  // namespace xschedd::ctl
