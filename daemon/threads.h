// Handles failure to start a thread. Thread rule: main, before there are threads.
#pragma once

namespace xschedd {

// From now on, if any thread cannot be started, also by a library, the process ends with one line and exit code 1.
void ExitWithoutThreads();

}  // namespace xschedd
