// Shows long answers on a terminal in a pager, as systemctl does. Thread rule: main thread.
#pragma once

#include <string>

#include "tools/xschedctl/commands.h"

namespace xschedd::ctl {

// Prints `text`, in a pager if standard output is a terminal on which it does not fit, unless --no-pager was given. The
// pager is $XSCHEDCTL_PAGER, else $PAGER, else less; empty or "cat": none. If it cannot be started, prints without.
void Page(const std::string& text, const GlobalOptions& global);

}  // namespace xschedd::ctl
