// Bytes as people read them. Thread rule: pure function.
#pragma once

#include <cstdint>
#include <string>

namespace xschedd {

// "200 MiB", "1.50 GiB": three significant digits.
std::string BytesText(std::uint64_t bytes);

}  // namespace xschedd
