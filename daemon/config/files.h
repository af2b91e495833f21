// Finds and reads the configuration's files: the main one, which `--config` names, and the folder `conf.d` beside it.
// In that folder, every file counts whose name ends with ".toml" and does not begin with a dot, in byte order of the
// names. Thread rule: reads files; no state.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "daemon/config/config.h"

namespace xschedd {

// "/etc/xschedd/conf.d" for "/etc/xschedd/xschedd.toml", whether or not it exists.
std::string DropInFolder(const std::string& path);

// In the order in which they apply. A missing main file is an error unless `may_be_absent`; a missing folder never is.
Result<std::vector<ConfigFile>> ReadConfigFiles(const std::string& path, bool may_be_absent);

Result<Config> LoadConfig(const std::string& path, bool may_be_absent);

}  // namespace xschedd
