// How much a group gains when others are held for it, in words, for `xschedctl explain`. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/policy/types.h"

namespace xschedd {

// "it lets those below it run beside it: ...". Empty: nothing is known, or nothing is measured.
std::string BenefitText(const policy::BenefitMemory& memory, std::uint32_t tolerance_percent);
// For a client that is held for that group: "beside it pid 7 would be 31 % slower". Empty: nothing is known.
std::string CostText(const policy::BenefitMemory& memory, std::uint64_t pid);

}  // namespace xschedd
