// Text from users and files as part of a line for people: messages quote keys, names and command lines, which may hold
// any byte, and a quote must neither split a line of the log nor control a terminal. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xschedd {

// Each control character becomes '?'.
inline std::string OneLine(std::string_view text) {
  std::string line(text);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte < 0x20 || byte == 0x7f) line[i] = '?';
    // U+0080..U+009F, which are two bytes long in UTF-8.
    const bool has_next = byte == 0xc2 && i + 1 < line.size();
    if (has_next && (static_cast<unsigned char>(line[i + 1]) & 0xe0) == 0x80) line.replace(i, 2, "?");
  }
  return line;
}

}  // namespace xschedd
