#include "daemon/registry/pci_address.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace xschedd {
namespace {

bool AreHexDigits(const std::string& text, std::size_t from, std::size_t count) {
  for (std::size_t i = from; i < from + count; ++i) {
    if (i >= text.size() || std::isxdigit(static_cast<unsigned char>(text[i])) == 0) return false;
  }
  return true;
}

}  // namespace

bool IsPciAddress(const std::string& text) {
  const bool is_function = AreHexDigits(text, 0, 4) && text.size() >= 12 && text[4] == ':' &&
                           AreHexDigits(text, 5, 2) && text[7] == ':' && AreHexDigits(text, 8, 2) && text[10] == '.' &&
                           AreHexDigits(text, 11, 1);
  if (!is_function) return false;
  if (text.size() == 12) return true;
  return text[12] == '/' && text.size() >= 14 && text.size() <= 17 &&
         std::all_of(text.begin() + 13, text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace xschedd
