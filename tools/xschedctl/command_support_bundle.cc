// `xschedctl support-bundle`: one file to attach to a bug report.
#include <fmt/format.h>

#include <ctime>
#include <memory>

#include "tools/xschedctl/bundle/parts.h"
#include "tools/xschedctl/bundle/whole_file.h"
#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/doctor/gather.h"
#include "tools/xschedctl/doctor/report.h"

namespace xschedd::ctl {
namespace {

std::string LocalTime(std::time_t now, const char* format) {
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &local)};
}

Outcome<ExitCode> SupportBundle(const std::string& given, const GlobalOptions& global) {
  const std::time_t now = std::time(nullptr);
  const std::string path = given.empty() ? LocalTime(now, "xschedd-support-%Y%m%d-%H%M%S.tar") : given;
  Parts parts;
  AddSystem(&parts);
  DoctorOptions options;
  options.runtime_dir = global.runtime_dir;
  const Facts facts = Gather(options);
  Redactor redactor(facts.environment);
  parts.Add("doctor", Render(Examine(facts), TextStyle()));
  AddVersions(facts, &parts);
  AddDaemon(global.runtime_dir, &redactor, &parts);
  parts.files.insert(parts.files.begin(), {"README", Readme(parts, LocalTime(now, "%Y-%m-%d %H:%M:%S %z"))});
  for (TarEntry& file : parts.files) {
    // Only these quote this program's environment; a replacement inside JSON could break it.
    if (file.name == "README" || file.name == "doctor" || file.name == "versions") file.text = redactor.Text(file.text);
  }
  if (const Result<void> written = WriteWhole(path, Tar(parts.files, static_cast<std::uint64_t>(now))); !written)
    return tl::unexpected<Failure>({ExitCode::kRefused, written.error()});
  Print(path + "\n");
  return ExitCode::kOk;
}

}  // namespace

Command AddSupportBundle(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command =
      program.AddCommand("support-bundle", "Write one file to attach to a bug report, without users' command lines");
  const auto path = std::make_shared<std::string>();
  command.AddOption("--output,-o", *path, "the file to write (default: xschedd-support-DATE-TIME.tar, here)");
  return {&command, [=, &global] { return SupportBundle(*path, global); }};
}

}  // namespace xschedd::ctl
