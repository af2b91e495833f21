// Finds and reads the configuration's files: the main one, which `--config` names, and the folder `conf.d` beside it.
// In that folder, every file counts whose name ends with ".toml" and does not begin with a dot, in byte order of the
// names. Thread rule: reads files; no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "daemon/config/config.h"

namespace xschedd {

// Remedies in messages about a file.
struct FileRemedies {
  const char* open;
  const char* size;  // it is longer than 1 MiB
  const char* read;
};

// The text of one file, for this configuration and for the files of tools. nullopt: the file does not exist. `flags`:
// more of open(2).
Result<std::optional<std::string>> ReadConfigText(const std::string& path, const FileRemedies& remedies, int flags = 0);

// "/etc/xschedd/conf.d" for "/etc/xschedd/xschedd.toml", whether or not it exists.
std::string DropInFolder(const std::string& path);

// In the order in which they apply. A missing main file is an error unless `may_be_absent`; a missing folder never is.
Result<std::vector<ConfigFile>> ReadConfigFiles(const std::string& path, bool may_be_absent);

Result<Config> LoadConfig(const std::string& path, bool may_be_absent);

}  // namespace xschedd
