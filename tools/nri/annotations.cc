#include "tools/nri/annotations.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace xschedd::nri {
namespace {

constexpr std::uint32_t kMaxCodePoint = 0x10ffff;

bool IsSurrogate(std::uint32_t point) {
  return point >= 0xd800 && point <= 0xdfff;
}

void AppendUtf8(std::uint32_t point, std::string& text) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) {
    add(point);
  } else if (point < 0x800) {
    add(0xc0 | (point >> 6));
    add(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    add(0xe0 | (point >> 12));
    add(0x80 | ((point >> 6) & 0x3f));
    add(0x80 | (point & 0x3f));
  } else {
    add(0xf0 | (point >> 18));
    add(0x80 | ((point >> 12) & 0x3f));
    add(0x80 | ((point >> 6) & 0x3f));
    add(0x80 | (point & 0x3f));
  }
}

// Removes this many hexadecimal digits from the front.
std::optional<std::uint32_t> TakeHex(std::string_view& rest, std::size_t digits) {
  if (rest.size() < digits) return std::nullopt;
  std::uint32_t value = 0;
  const char* const end = rest.data() + digits;
  const auto [read, error] = std::from_chars(rest.data(), end, value, 16);
  if (error != std::errc() || read != end) return std::nullopt;
  rest.remove_prefix(digits);
  return value;
}

// What a letter behind a backslash stands for; 0: it is not a simple escape.
char SimpleEscape(char letter) {
  switch (letter) {
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    case '\\':
    case '"':
      return letter;
    default:
      return 0;
  }
}

// `rest` begins after the backslash. False: it is not an escape.
bool TakeEscape(std::string_view& rest, std::string& value) {
  if (rest.empty()) return false;
  const char letter = rest.front();
  rest.remove_prefix(1);
  if (const char simple = SimpleEscape(letter); simple != 0) {
    value += simple;
    return true;
  }
  const std::size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (digits == 0) return false;
  const auto number = TakeHex(rest, digits);
  if (!number || *number > kMaxCodePoint) return false;
  if (letter == 'x') {
    value += static_cast<char>(*number);
    return true;
  }
  if (IsSurrogate(*number)) return false;
  AppendUtf8(*number, value);
  return true;
}

// nullopt: this is not quoted text.
std::optional<std::string> Unquote(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  std::string_view rest = text.substr(1, text.size() - 2);
  std::string value;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') return std::nullopt;
    if (c != '\\') {
      value += c;
    } else if (!TakeEscape(rest, value)) {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

Result<Annotations> ParseAnnotations(std::string_view text) {
  Annotations annotations;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    const std::size_t at = line.find('=');
    const auto value = at == 0 || at == std::string_view::npos ? std::nullopt : Unquote(line.substr(at + 1));
    if (!value) {
      return Fail("line " + std::to_string(number) + " is not an annotation, KEY=\"VALUE\"",
                  "give the volume fieldPath: metadata.annotations");
    }
    annotations[std::string(line.substr(0, at))] = *value;
  }
  return annotations;
}

}  // namespace xschedd::nri
