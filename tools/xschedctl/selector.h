// The options that select clients, as text from the command line, and their conversion into the protocol's Selector.
// Thread rule: values.
#pragma once

#include <string>
#include <vector>

#include "admin.pb.h"
#include "common/result.h"

namespace xschedd::ctl {

struct SelectorOptions {
  std::vector<std::string> pids;
  std::string uid;  // number or user name
  std::string group;
  std::string cgroup;
  std::string exe;
  bool all = false;

  bool IsEmpty() const { return pids.empty() && uid.empty() && group.empty() && cgroup.empty() && exe.empty() && !all; }
};

enum class WhenEmpty {
  kIsError,   // set, hold, release: no selector must not mean every client
  kMeansAll,  // ps
};

Result<v1::Selector> ParseSelector(const SelectorOptions& options, WhenEmpty when_empty);

}  // namespace xschedd::ctl
