// Converts settings to protobuf messages. Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "admin.pb.h"
#include "daemon/config/describe.h"

namespace xschedd {

// `file`: the main file, whether or not it exists.
void FillConfiguration(const std::string& file, const Config& config, const std::vector<Setting>& settings,
                       v1::GetConfigResponse& out);
// Adds each setting that differs or exists on only one side.
void FillChanges(const std::vector<Setting>& before, const std::vector<Setting>& after, v1::ReloadResponse& out);

}  // namespace xschedd
