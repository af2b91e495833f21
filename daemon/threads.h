// What happens when no thread can be started. Thread rule: main, before there are threads.
#pragma once

namespace xschedd {

// From here on, the process ends with one line and exit code 1 when a thread, also of a library, cannot be started.
void ExitWithoutThreads();

}  // namespace xschedd
