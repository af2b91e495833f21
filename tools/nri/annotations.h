// A pod's annotations as the kubelet writes them into a downward API volume: a line for each, KEY="VALUE", the value
// quoted as Go quotes strings. Thread rule: pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd::nri {

using Annotations = std::map<std::string, std::string>;

// Fails on the first line that is not an annotation, with its number.
Result<Annotations> ParseAnnotations(std::string_view text);

}  // namespace xschedd::nri
