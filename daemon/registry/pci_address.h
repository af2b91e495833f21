// The form of a device's address. Thread rule: pure.
#pragma once

#include <string>

namespace xschedd {

// "0000:c1:00.0", with "/N" for a partition. Hexadecimal digits, lower or upper case.
bool IsPciAddress(const std::string& text);

}  // namespace xschedd
