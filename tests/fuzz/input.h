// Shared by all fuzz targets: reading the input piece by piece, and a check that ends the run. Thread rule: one user at
// a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

// The one function of a target. libFuzzer calls it again and again; replay_main.cc with the inputs in the tree.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// A property that must hold for every input; libFuzzer keeps an input that violates it.
#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace xschedd::fuzz {

// Past the end of the input everything is zero or empty, so that targets check for the end only in their loop.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool IsEmpty() const { return size_ == 0; }

  template <typename Number>
  Number Take() {
    Number value{};
    const std::size_t count = std::min(sizeof value, size_);
    if (count > 0) std::memcpy(&value, data_, count);  // without bytes the address may be null
    Skip(count);
    return value;
  }
  std::uint8_t Byte() { return Take<std::uint8_t>(); }
  bool Flag() { return (Byte() & 1) != 0; }
  // 0 .. `count` - 1.
  std::uint32_t Below(std::uint32_t count) { return Take<std::uint16_t>() % count; }
  // A text with its length in two bytes before it.
  std::string Text() { return std::string(Piece()); }
  std::string_view Piece() { return Sized(Take<std::uint16_t>()); }
  // The same with a length in one byte.
  std::string ShortText() { return std::string(Sized(Byte())); }
  std::string_view Sixteen() { return Sized(16); }
  std::string_view Rest() { return Sized(size_); }

 private:
  std::string_view Sized(std::size_t wanted) {
    const std::size_t count = std::min(wanted, size_);
    const std::string_view piece(reinterpret_cast<const char*>(data_), count);
    Skip(count);
    return piece;
  }
  void Skip(std::size_t count) {
    data_ += count;
    size_ -= count;
  }

  const std::uint8_t* data_;
  std::size_t size_;
};

// Whether `text` may be shown to people: without control characters except the line feed, in one byte or two.
inline bool IsShowable(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) return false;
    if (byte == 0xc2 && i + 1 < text.size()) {
      const auto next = static_cast<unsigned char>(text[i + 1]);
      if (next >= 0x80 && next < 0xa0) return false;
    }
  }
  return true;
}

// Whether `text` is one printable line of limited length, as an error must be.
inline bool IsOneLine(std::string_view text, std::size_t limit) {
  return text.size() <= limit && text.find('\n') == std::string_view::npos && IsShowable(text);
}

}  // namespace xschedd::fuzz
