#include "common/byte_size.h"

#include "tests/catch.h"

using namespace xschedd;

TEST_CASE("sizes of memory are read, with binary suffixes") {
  const struct {
    const char* text;
    std::uint64_t bytes;
  } kCases[] = {
      {"0", 0},
      {"1", 1},
      {"4096", 4096},
      {"1K", 1024},
      {"3k", 3072},
      {"512M", 512ull << 20},
      {"24G", 24ull << 30},
      {"24Gi", 24ull << 30},
      {"24GiB", 24ull << 30},
      {"24g", 24ull << 30},
      {"2T", 2ull << 40},
      {"18446744073709551615", ~0ull},
      {"16777215T", 16777215ull << 40},
  };
  for (const auto& [text, bytes] : kCases) {
    INFO(text);
    CHECK(ParseByteSize(text) == bytes);
  }
}

TEST_CASE("any other text is no size of memory, and never taken for a part of itself") {
  for (const char* text : {"",
                           " ",
                           "G",
                           "K1",
                           "-1",
                           "+1",
                           "1.5G",
                           "1 G",
                           "1G ",
                           " 1G",
                           "1GB",
                           "1kb",
                           "1GG",
                           "1P",
                           "1iB",
                           "0x10",
                           "1e9",
                           "1Gib",
                           "none",
                           "80 GiB",
                           "18446744073709551616",
                           "16777216T",
                           "99999999999999999999G",
                           "99999999999999999999x"}) {
    INFO(text);
    const auto parsed = ParseByteSize(text);
    REQUIRE(!parsed);
    CHECK(parsed.error().remedy == "give bytes, or a whole number with K, M, G or T (1024 each), such as 24G");
  }
  CHECK(ParseByteSize("16777216T").error().what == "the size of memory \"16777216T\" is too large");
  CHECK(ParseByteSize("1GB").error().what == "\"1GB\" is not a size of memory");
}
