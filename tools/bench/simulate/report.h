// Results as text and JSON, each beside those of the same workload unscheduled.
// Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/bench/simulate/results.h"

namespace xschedd::simulate {

// What one value of a swept setting led to.
struct SweepPoint {
  std::string value;
  Results results;
};

// `reference`: the same workload unscheduled.
std::string Table(const Results& results, const Results& reference);
// A line for each value and class.
std::string SweepTable(const std::string& setting, const std::vector<SweepPoint>& points, const Results& reference);
nlohmann::json ToJson(const Results& results, const Results& reference);

}  // namespace xschedd::simulate
