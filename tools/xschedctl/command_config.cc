// `xschedctl config check` and `config show`: check a file as the daemon would read it; show the settings in force.
#include <memory>
#include <vector>

#include "daemon/config/files.h"
#include "daemon/install_paths.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/pager.h"
#include "tools/xschedctl/render_config.h"

namespace xschedd::ctl {
namespace {

struct ConfigOptions {
  std::string file;
  bool offline = false;
  bool changed = false;
};

// The remedies in the reader's errors address whoever starts the daemon.
Outcome<std::vector<ConfigFile>> ReadFiles(const std::string& given, bool may_be_absent) {
  auto files = ReadConfigFiles(given.empty() ? kDefaultConfigPath : given, may_be_absent);
  if (!files)
    return UsageFailure(
        {files.error().what, "correct it, or name another file; the daemon's is " + std::string(kDefaultConfigPath)});
  return std::move(*files);
}

Outcome<ExitCode> CheckFile(const std::string& given, const GlobalOptions& global) {
  const Outcome<std::vector<ConfigFile>> files = ReadFiles(given, false);
  if (!files) return tl::unexpected<Failure>(files.error());
  const Examined examined = ExamineConfig(*files);
  Page(
      global.json ? Document("config-check", ToJson(*files, examined)) : RenderErrors(*files, examined, global.Style()),
      global);
  return examined.errors.empty() ? ExitCode::kOk : ExitCode::kFound;
}

// What a daemon started now would use, apart from its command line.
Outcome<ShownConfig> FromFile(const std::string& given) {
  const std::string file = given.empty() ? kDefaultConfigPath : given;
  const Outcome<std::vector<ConfigFile>> files = ReadFiles(given, given.empty());
  if (!files) return tl::unexpected<Failure>(files.error());
  const Result<Config> parsed = ParseConfig(*files);
  if (!parsed) return tl::unexpected<Failure>({ExitCode::kFound, parsed.error()});
  const bool is_there = !files->empty() && files->front().path == file;
  return Shown(*parsed, is_there ? file : "");
}

Outcome<ShownConfig> FromDaemon(const GlobalOptions& global) {
  Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
  if (!client) {
    Failure failure = client.error();
    failure.error.remedy += ", or give --offline for what the file says";
    return tl::unexpected<Failure>(std::move(failure));
  }
  const auto answer = client->Call(v1::GetConfigRequest());
  if (!answer) return tl::unexpected<Failure>(answer.error());
  return ShownConfig{*answer, true};
}

Outcome<ExitCode> Show(const ConfigOptions& options, const GlobalOptions& global) {
  const bool is_offline = options.offline || !options.file.empty();
  const Outcome<ShownConfig> shown = is_offline ? FromFile(options.file) : FromDaemon(global);
  if (!shown) return tl::unexpected<Failure>(shown.error());
  Page(global.json ? Document("config-show", ToJson(*shown, options.changed))
                   : RenderConfig(*shown, options.changed, global.Style()),
       global);
  return ExitCode::kOk;
}

}  // namespace

std::vector<Command> AddConfig(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& config = program.AddCommand("config", "Check a configuration file, or show what is in force");
  config.RequireCommand();
  auto options = std::make_shared<ConfigOptions>();
  CommandSyntax& check = config.AddCommand(
      "check", "Read a file, and conf.d beside it, as the daemon would, and list all errors; needs no daemon");
  check.AddOption("file", options->file, "the file (default: " + std::string(kDefaultConfigPath) + ")");
  CommandSyntax& show =
      config.AddCommand("show", "Show each setting that is in force, where it comes from, and its default");
  show.AddFlag("--changed", options->changed, "show only what differs from the defaults");
  show.AddFlag("--offline", options->offline, "show what the daemon's files say, without asking the daemon");
  show.AddOption("--file", options->file,
                 "show what this file, with conf.d beside it, says, without asking the daemon");
  return {{&check, [=, &global] { return CheckFile(options->file, global); }},
          {&show, [=, &global] { return Show(*options, global); }}};
}

}  // namespace xschedd::ctl
