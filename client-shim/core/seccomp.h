// Finds out which of the library's system calls the host's seccomp filter forbids. A filter may kill the process at a
// call that the program itself never makes. So if there is a filter, the calls are first tried in a process that may
// die. Thread rule: the agent's thread, whose filter counts.
#pragma once

#include <string>

namespace xschedd::shim {

// Empty if nothing is forbidden, there is no filter, or the kernel (before 5.16) does not allow a safe trial; else the
// rest of the sentence "its seccomp filter ...".
std::string ForbiddenByFilter();

}  // namespace xschedd::shim
