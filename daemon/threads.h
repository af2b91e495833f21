// Ends the daemon if a thread cannot be started. Thread rule: main, before there are threads.
#pragma once

namespace xschedd {

// From now on the process ends with one line and exit code 1 if any thread, even a library's, cannot be started.
void ExitWithoutThreads();

}  // namespace xschedd
