// How many groups have their turn at a time on a device, which join them, and why, in words. Thread rule: pure
// functions.
#pragma once

#include <string>

#include "daemon/policy/types.h"

namespace xschedd {

// "2 at a time, with which they got on 83 % faster than with 1".
std::string FillingText(const policy::FillingMemory& memory);
// "it joins all others' turns, ...". Empty: it does not. `on`: the memory of its device, by which it may have its own
// turns at the moment; null: unknown.
std::string JoinsText(const policy::GroupMemory& memory, const policy::FillingMemory* on = nullptr);

}  // namespace xschedd
