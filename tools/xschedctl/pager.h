// Long answers on a terminal: through a pager, as systemctl does it. Thread rule: main thread.
#pragma once

#include <string>

#include "tools/xschedctl/commands.h"

namespace xschedd::ctl {

// Prints `text`; by a pager where standard output is a terminal that it does not fit, unless --no-pager says otherwise.
// The pager is $XSCHEDCTL_PAGER, else $PAGER, else less; set and empty, or "cat": none. One that cannot be started is
// as none.
void Page(const std::string& text, const GlobalOptions& global);

}  // namespace xschedd::ctl
