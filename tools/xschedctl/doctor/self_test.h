// The self test of `xschedctl doctor`: two programs under the installed shim, of different priority, against the
// running daemon, on a simulated device (self_test/fake_hip.c). Takes about four seconds; changes nothing that outlives
// it. Thread rule: main thread.
#pragma once

#include <string>

#include "tools/xschedctl/doctor/finding.h"

namespace xschedd::ctl {

// `shim`: the one to preload. `runtime_dir`: absolute.
Findings SelfTest(const std::string& shim, const std::string& runtime_dir);

}  // namespace xschedd::ctl
