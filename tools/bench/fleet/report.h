// A comparison as text, as JSON, and as a page of docs/results. Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/bench/fleet/compare.h"

namespace xschedd::fleet {

// What was simulated, beside its results.
struct Subject {
  std::string trace;     // "made site, load 1, seed 1", or the files
  std::string patterns;  // the name of their file
  std::string engine;    // as on the command line
  std::string placing;
  std::string policy;
  std::string commit;  // of this program; "unknown" outside of a checkout
  std::string date;    // YYYY-MM-DD
  std::size_t jobs = 0;
  CompareOptions options;
};

std::string Table(const Subject& subject, const Trace& trace, const Patterns& patterns, const Comparison& comparison);
nlohmann::json ToJson(const Subject& subject, const Trace& trace, const Patterns& patterns,
                      const Comparison& comparison);
// `json`: the name of the file beside it.
std::string Page(const Subject& subject, const Trace& trace, const Patterns& patterns, const Comparison& comparison,
                 const std::string& command, const std::string& json);

}  // namespace xschedd::fleet
