// What becomes of the daemon when no thread can be started. Thread rule: main, before there are threads.
#pragma once

namespace xschedd {

// From here on a thread that cannot be started, a library's too, ends the process with one line and exit code 1.
void EndForWantOfThreads();

}  // namespace xschedd
