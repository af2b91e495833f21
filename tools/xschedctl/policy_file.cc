#include "tools/xschedctl/policy_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "daemon/config/config.h"
#include "daemon/config/settings_message.h"
#include "tools/xschedctl/bundle/whole_file.h"
#include "tools/xschedctl/file_text.h"

namespace xschedd::ctl {
namespace {

constexpr std::string_view kFileName = "50-policy.toml";
constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;
constexpr std::string_view kHead =
    "# Written by `xschedctl policy set --persist`, which keeps [policy], [device] and [amd] and no comments. A "
    "file of\n"
    "# conf.d with a later name overrides it.\n";

std::string TomlString(std::string_view word) {
  return '"' + std::string(word) + '"';
}

// As TOML: "off" and "auto" are strings.
std::string ValueText(const policy::SettingRow& row, policy::Value value) {
  const std::string text = policy::Text(row, value);
  return row.IsLever() || value == policy::kByVendor ? TomlString(text) : text;
}

std::string KeyOf(const policy::SettingRow& row) {
  return std::string(row.Section()) + "." + std::string(row.key);
}

bool IsOfPolicy(const std::string& key) {
  const std::string section = key.substr(0, key.find('.'));
  return std::find(std::begin(policy::kSections), std::end(policy::kSections), section) != std::end(policy::kSections);
}

bool HasMore(const Config& config) {
  const auto& places = config.places;
  return std::any_of(places.begin(), places.end(), [](const auto& one) { return !IsOfPolicy(one.first); });
}

}  // namespace

Result<std::string> PolicyFileText(const std::string& before, const v1::SetPolicyRequest& request,
                                   const std::string& path) {
  const Result<Config> config = ParseConfig({{path, before}});
  if (!config) return tl::unexpected<Error>(config.error());
  if (HasMore(*config)) {
    return Fail(path + " contains more than the policy, which would be lost",
                "rename it: xschedctl keeps the policy in " + std::string(kFileName));
  }
  std::map<std::string, std::string> values;
  const auto has = [&](const std::string& key) { return config->places.count(key) != 0; };
  if (request.has_name()) {
    values["policy.name"] = TomlString(request.name());
  } else if (has("policy.name")) {
    values["policy.name"] = TomlString(policy::Text(config->policy.name));
  }
  for (const policy::SettingRow& row : policy::kSettings) {
    const auto given = FindSetting(row, request);
    if (!given) return tl::unexpected<Error>(given.error());
    if (*given) {
      values[KeyOf(row)] = ValueText(row, **given);
    } else if (has(KeyOf(row))) {
      values[KeyOf(row)] = ValueText(row, policy::Get(row, config->policy));
    }
  }
  std::string text(kHead);
  for (const std::string_view name : policy::kSections) {
    const std::string section(name);
    std::string lines;
    for (const auto& [key, value] : values)
      if (key.starts_with(section + ".")) lines += key.substr(section.size() + 1) + " = " + value + "\n";
    if (!lines.empty()) text += fmt::format("\n[{}]\n{}", section, lines);
  }
  return text;
}

Failure PolicyFile::Failed(const std::string& what) const {
  const int error = errno;
  const bool is_denied = error == EACCES || error == EPERM;
  return {is_denied ? ExitCode::kPermission : ExitCode::kRefused,
          {fmt::format("cannot {}: {}; nothing was changed", what, std::strerror(error)),
           is_denied         ? "run it as root, or without --persist"
           : error == ENOENT ? "run it where the daemon's files are, or without --persist"
                             : "correct that, or set it without --persist"}};
}

PolicyFile::PolicyFile(PolicyFile&& other) noexcept
    : folder_name_(std::move(other.folder_name_)),
      path_(std::move(other.path_)),
      folder_(std::move(other.folder_)),
      made_folder_(std::exchange(other.made_folder_, false)),
      is_written_(std::exchange(other.is_written_, false)),
      is_kept_(std::exchange(other.is_kept_, true)),
      before_(std::move(other.before_)) {}

PolicyFile::~PolicyFile() {
  if (is_kept_) return;
  if (is_written_) {
    if (!before_) {
      ::unlink(path_.c_str());
    } else if (!Write(*before_)) {
      fmt::print(stderr, "xschedctl: cannot restore {}\n", path_);
    }
  }
  if (made_folder_) ::rmdir(folder_name_.c_str());
}

// Locks the folder, and returns what the file contains now.
Outcome<std::string> PolicyFile::Open() {
  made_folder_ = ::mkdir(folder_name_.c_str(), kFolderMode) == 0;
  if (!made_folder_ && errno != EEXIST) return tl::unexpected(Failed("make the folder " + folder_name_));
  folder_ = UniqueFd(::open(folder_name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.IsValid()) return tl::unexpected(Failed("open the folder " + folder_name_));
  if (::flock(folder_.Get(), LOCK_EX) != 0) return tl::unexpected(Failed("lock the folder " + folder_name_));
  if (::access(path_.c_str(), F_OK) != 0) return std::string();
  bool is_readable = false;
  before_ = FileText(path_, &is_readable);
  if (!is_readable) return tl::unexpected(Failed("read " + path_));
  return *before_;
}

Outcome<void> PolicyFile::Write(const std::string& text) {
  if (const int error = ReplaceFile(path_, text, kFileMode); error != 0) {
    errno = error;
    return tl::unexpected(Failed("write " + path_));
  }
  ::fsync(folder_.Get());
  return {};
}

Outcome<PolicyFile> PolicyFile::Change(const std::string& folder, const v1::SetPolicyRequest& request) {
  PolicyFile file;
  file.folder_name_ = folder;
  file.path_ = folder + "/" + std::string(kFileName);
  const Outcome<std::string> before = file.Open();
  if (!before) return tl::unexpected<Failure>(before.error());
  const Result<std::string> text = PolicyFileText(*before, request, file.path_);
  if (!text) return tl::unexpected<Failure>({ExitCode::kRefused, text.error()});
  if (const Outcome<void> written = file.Write(*text); !written) return tl::unexpected<Failure>(written.error());
  file.is_written_ = true;
  return file;
}

}  // namespace xschedd::ctl
