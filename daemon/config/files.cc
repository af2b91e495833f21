#include "daemon/config/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/one_line.h"
#include "common/unique_fd.h"

namespace xschedd {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::string_view kDropInFolder = "conf.d";
constexpr std::string_view kDropInEnd = ".toml";

constexpr FileRemedies kOfMain = {"check the path given to --config", "give --config a configuration file",
                                  "give --config a TOML file"};
constexpr FileRemedies kOfDropIn = {"correct it or remove it", "remove it", "correct it or remove it"};

bool IsDropIn(std::string_view name) {
  return name.size() > kDropInEnd.size() && name.front() != '.' &&
         name.substr(name.size() - kDropInEnd.size()) == kDropInEnd;
}

Result<std::vector<std::string>> DropIns(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (IsDropIn(entry->path().filename().native())) paths.push_back(entry->path().native());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return Fail("cannot read the folder " + OneLine(folder) + ": " + error.message(), kOfDropIn.read);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

Result<std::optional<std::string>> ReadConfigText(const std::string& path, const FileRemedies& remedies, int flags) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (!file.IsValid()) {
    if (errno == ENOENT) return std::nullopt;
    return Fail("cannot open " + OneLine(path) + ": " + std::strerror(errno), remedies.open);
  }
  std::string text;
  char buffer[4096];
  ssize_t size = 0;
  while ((size = ::read(file.Get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(size));
    if (text.size() > kMaxFileBytes) return Fail(OneLine(path) + " is longer than 1 MiB", remedies.size);
  }
  if (size < 0) return Fail("cannot read " + OneLine(path) + ": " + std::strerror(errno), remedies.read);
  return text;
}

std::string DropInFolder(const std::string& path) {
  return (std::filesystem::path(path).parent_path() / kDropInFolder).native();
}

Result<std::vector<ConfigFile>> ReadConfigFiles(const std::string& path, bool may_be_absent) {
  std::vector<ConfigFile> files;
  auto main = ReadConfigText(path, kOfMain);
  if (!main) return tl::unexpected<Error>(main.error());
  if (!*main && !may_be_absent) return Fail("cannot open " + path + ": " + std::strerror(ENOENT), kOfMain.open);
  if (*main) files.push_back({path, std::move(**main)});
  const auto drop_ins = DropIns(DropInFolder(path));
  if (!drop_ins) return tl::unexpected<Error>(drop_ins.error());
  for (const std::string& drop_in : *drop_ins) {
    // O_NONBLOCK: a pipe among them must not block.
    auto text = ReadConfigText(drop_in, kOfDropIn, O_NONBLOCK);
    if (!text) return tl::unexpected<Error>(text.error());
    if (!*text) return Fail("cannot open " + OneLine(drop_in) + ": " + std::strerror(ENOENT), kOfDropIn.open);
    files.push_back({drop_in, std::move(**text)});
  }
  return files;
}

Result<Config> LoadConfig(const std::string& path, bool may_be_absent) {
  const auto files = ReadConfigFiles(path, may_be_absent);
  if (!files) return tl::unexpected<Error>(files.error());
  return ParseConfig(*files);
}

}  // namespace xschedd
