// Sizes of memory as people write them: "24G". A suffix is binary: K = 1024, M, G and T.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd {

// Bytes. Takes a whole decimal number, alone or with one of K, M, G, T (either case), also written Ki or KiB. Fails for
// anything else, also KB (1000 or 1024?), and for what does not fit 64 bits; the error says what to give. "0" is 0:
// what that means is the caller's to say.
Result<std::uint64_t> ParseByteSize(std::string_view text);

// The shortest text that ParseByteSize reads as exactly these bytes: "24G", "1536M", "4097".
std::string ByteSizeText(std::uint64_t bytes);

}  // namespace xschedd
