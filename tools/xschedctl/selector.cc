#include "tools/xschedctl/selector.h"

#include <limits>

#include "daemon/config/user_name.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {

Result<v1::Selector> ParseSelector(const SelectorOptions& options, WhenEmpty when_empty) {
  v1::Selector selector;
  if (options.IsEmpty()) {
    if (when_empty == WhenEmpty::kIsError) {
      return Fail("no client was chosen", "give a pid, --uid, --group, --cgroup, --exe, or --all for every client");
    }
    selector.set_all(true);
    return selector;
  }
  SelectorOptions narrowing = options;
  narrowing.all = false;
  if (options.all && !narrowing.IsEmpty()) {
    return Fail("--all contradicts the other selectors", "give one or the other");
  }
  for (const std::string& text : options.pids) {
    const Result<std::uint64_t> pid = ParseNumber(text, "pid", std::numeric_limits<std::int32_t>::max());
    if (!pid) return tl::unexpected<Error>(pid.error());
    selector.add_pid(*pid);
  }
  if (!options.uid.empty()) {
    const Result<std::uint32_t> uid = UidOf(options.uid);
    if (!uid) return tl::unexpected<Error>(uid.error());
    selector.set_uid(*uid);
  }
  if (!options.group.empty()) selector.set_group(options.group);
  if (!options.cgroup.empty()) selector.set_cgroup(options.cgroup);
  if (!options.exe.empty()) selector.set_exe(options.exe);
  selector.set_all(options.all);
  return selector;
}

}  // namespace xschedd::ctl
