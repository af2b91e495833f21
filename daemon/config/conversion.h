// Settings of the configuration as protobuf messages. Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "admin.pb.h"
#include "daemon/config/describe.h"

namespace xschedd {

// `file`: the main one; "" where none was read.
void FillConfiguration(const std::string& file, const Config& config, const std::vector<Setting>& settings,
                       v1::GetConfigResponse& out);
// Each setting whose value differs, those that are only on one side too.
void FillChanges(const std::vector<Setting>& before, const std::vector<Setting>& after, v1::ReloadResponse& out);

}  // namespace xschedd
