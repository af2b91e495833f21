// The configuration's files: the main one, which `--config` names, and what is in the folder `conf.d` beside it. Of
// that folder every file counts whose name ends with ".toml" and does not begin with a dot, in the order of the names'
// bytes. Thread rule: reads files; no state.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "daemon/config/config.h"

namespace xschedd {

// "/etc/xschedd/conf.d" of "/etc/xschedd/xschedd.toml"; whether or not it is there.
std::string DropInFolder(const std::string& path);

// In the order in which they count. A main file that does not exist is an error unless `may_be_absent`, the folder
// never.
Result<std::vector<ConfigFile>> ReadConfigFiles(const std::string& path, bool may_be_absent);

// Reads and parses them.
Result<Config> LoadConfig(const std::string& path, bool may_be_absent);

}  // namespace xschedd
