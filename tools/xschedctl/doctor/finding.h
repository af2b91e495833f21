// The result of a check of `xschedctl doctor`. Thread rule: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xschedd::ctl {

enum class Level { kOk, kWarning, kError };

struct Finding {
  Level level = Level::kOk;
  std::string what;  // what was found
  std::string fix;   // what to do; empty: nothing
};
using Findings = std::vector<Finding>;

inline Finding Ok(std::string what) {
  return {Level::kOk, std::move(what), {}};
}
inline Finding Warning(std::string what, std::string fix) {
  return {Level::kWarning, std::move(what), std::move(fix)};
}
inline Finding Broken(std::string what, std::string fix) {
  return {Level::kError, std::move(what), std::move(fix)};
}

std::string_view Name(Level level);

}  // namespace xschedd::ctl
