// The labels of claims as text and as JSON, sorted by name: a protobuf map has no order. Thread rule: pure functions.
#pragma once

#include <google/protobuf/map.h>

#include <string>

#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {

using LabelMap = google::protobuf::Map<std::string, std::string>;

// "job=17,step=0"; empty without labels.
std::string LabelsText(const LabelMap& labels);
Json LabelsJson(const LabelMap& labels);

}  // namespace xschedd::ctl
