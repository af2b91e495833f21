// Which of the library's system calls a seccomp filter of the host forbids. A filter may end the process at a call that
// the program itself never makes; so if there is one, the calls are first tried in a process that may die.
// Thread rule: the agent's thread; its filter counts.
#pragma once

#include <string>

namespace xschedd::shim {

// Empty where nothing is forbidden, no filter is there, or the kernel (before 5.16) does not let it be tried safely;
// else how the sentence "its seccomp filter ..." goes on.
std::string ForbiddenByFilter();

}  // namespace xschedd::shim
