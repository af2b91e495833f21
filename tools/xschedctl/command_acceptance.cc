// `xschedctl acceptance`: executes the program of the package xschedd-bench. It is not part of xschedctl because it
// needs Python, and a node that only runs programs does not need it.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "tools/xschedctl/argument_vector.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/preload.h"

namespace xschedd::ctl {
namespace {

struct AcceptanceOptions {
  double minutes = 10;
  std::string output;
  std::string resumed;
  std::string sections;
  std::string repeat;
  bool levers = false;
  bool only_quiet = false;
  bool beside_others = false;
  bool show_host = false;
  bool compare = false;
  std::vector<std::string> reports;
};

// Beside the build's xschedctl, below the prefix of an installed one, or where this build is installed.
std::string FindAcceptance(const std::string& own_path) {
  const std::filesystem::path folder = std::filesystem::path(own_path).parent_path();
  const std::array<std::filesystem::path, 3> candidates = {
      folder / "../bench/acceptance/acceptance", folder / "../share/xschedd/bench/acceptance/acceptance",
      std::filesystem::path(XSCHEDD_DATA_DIR) / "xschedd/bench/acceptance/acceptance"};
  for (const std::filesystem::path& candidate : candidates)
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.lexically_normal().string();
  return {};
}

Outcome<ExitCode> Acceptance(const AcceptanceOptions& options, const GlobalOptions& global) {
  if (options.compare && options.reports.size() != 2)
    return UsageFailure({"--compare takes two reports", "name two folders that acceptance has written"});
  if (!options.compare && !options.reports.empty())
    return UsageFailure({"folders of reports go with --compare", "add --compare, or leave them out"});
  if (global.json && (options.compare || options.only_quiet))
    return UsageFailure({"--quiet-check and --compare have no JSON output", "leave --json out"});
  const std::string own_path = OwnPath();
  const std::string program = FindAcceptance(own_path);
  if (program.empty())
    return tl::unexpected<Failure>(
        {ExitCode::kNoCommand, {"acceptance is not installed here", "install it: apt install xschedd-bench"}});
  std::vector<std::string> words = {program, "-x", own_path, "--minutes", std::to_string(options.minutes)};
  const auto add = [&words](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  add("--runtime-dir", global.runtime_dir);
  add("--output", options.output);
  add("--continue", options.resumed);
  add("--sections", options.sections);
  add("--repeat", options.repeat);
  if (options.levers) words.emplace_back("--levers");
  if (options.only_quiet) words.emplace_back("--quiet-check");
  if (options.beside_others) words.emplace_back("--beside-others");
  if (options.show_host) words.emplace_back("--show-host");
  if (global.json) words.emplace_back("--json");
  if (options.compare) words.emplace_back("--compare");
  words.insert(words.end(), options.reports.begin(), options.reports.end());
  ::execv(program.c_str(), ArgumentVector(words).data());
  return tl::unexpected<Failure>(
      {ExitCode::kCannotExec,
       {"cannot execute " + program + ": " + std::strerror(errno), "it needs python3; reinstall xschedd-bench"}});
}

}  // namespace

Command AddAcceptance(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("acceptance", "Try xschedd on this node, and write a report");
  const auto options = std::make_shared<AcceptanceOptions>();
  command.AddOption("--minutes", options->minutes, "end after this many minutes",
                    {.shows_default = true, .value = OptionForm::Value::kPositive});
  command.AddOption("--output,-o", options->output, "the report's folder (default: acceptance-HOST-DATE, here)");
  command.AddOption("--continue", options->resumed, "continue this report: do only what it has no verdict for",
                    {.value = OptionForm::Value::kExistingFolder});
  command.AddOption("--sections", options->sections,
                    "do only these, separated by commas: sound, harmless, works, worth");
  command.AddOption("--repeat", options->repeat, "do only this run of harmless, WAY:SEED, as a report names it");
  command.AddFlag("--levers", options->levers,
                  "measure AMD's queue priorities and CU masks, too: they disturb everybody on the GPU");
  command.AddFlag("--quiet-check", options->only_quiet, "only show whether the GPUs are idle");
  command.AddFlag("--beside-others", options->beside_others, "proceed although a GPU is in use");
  command.AddFlag("--show-host", options->show_host, "write the host's name instead of a hash of it");
  command.AddFlag("--compare", options->compare, "compare two reports");
  command.AddOption("report", options->reports, "the folders to compare");
  return {&command, [=, &global] { return Acceptance(*options, global); }};
}

}  // namespace xschedd::ctl
