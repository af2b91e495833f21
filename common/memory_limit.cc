#include "common/memory_limit.h"

#include "common/byte_size.h"

namespace xschedd {

Result<void> CheckMemoryLimit(std::uint64_t bytes) {
  if (bytes >= kMemoryLimitMin && bytes <= kMemoryLimitMax) return {};
  return Fail("a limit of " + std::to_string(bytes) + " bytes of device memory is out of range",
              "give " + ByteSizeText(kMemoryLimitMin) + " to " + ByteSizeText(kMemoryLimitMax) + ", such as 24G");
}

Result<std::uint64_t> ParseMemoryLimit(std::string_view text) {
  Result<std::uint64_t> bytes = ParseByteSize(text);
  if (!bytes) return bytes;
  if (const Result<void> checked = CheckMemoryLimit(*bytes); !checked) return tl::unexpected<Error>(checked.error());
  return bytes;
}

}  // namespace xschedd
