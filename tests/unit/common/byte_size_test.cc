#include "common/byte_size.h"

#include "common/bytes_text.h"
#include "common/memory_limit.h"
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

TEST_CASE("a size is written so that it is read as the same") {
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1023}, std::uint64_t{1024}, std::uint64_t{1536} << 20,
        std::uint64_t{24} << 30, std::uint64_t{1} << 50, (std::uint64_t{24} << 30) + 1, ~std::uint64_t{0}}) {
    INFO(bytes);
    CHECK(ParseByteSize(ByteSizeText(bytes)) == bytes);
  }
  CHECK(ByteSizeText(std::uint64_t{24} << 30) == "24G");
  CHECK(ByteSizeText(std::uint64_t{1536} << 20) == "1536M");
  CHECK(ByteSizeText(std::uint64_t{1} << 50) == "1024T");
  CHECK(ByteSizeText(0) == "0");
}

TEST_CASE("bytes have three significant digits for people") {
  CHECK(BytesText(0) == "0 B");
  CHECK(BytesText(999) == "999 B");
  CHECK(BytesText(1000) == "0.98 KiB");
  CHECK(BytesText(std::uint64_t{1} << 20) == "1.00 MiB");
  CHECK(BytesText(200 << 20) == "200 MiB");
  CHECK(BytesText(1023 << 20) == "1.00 GiB");
  CHECK(BytesText(std::uint64_t{192} << 30) == "192 GiB");
  CHECK(BytesText(std::uint64_t{2} << 50) == "2048 TiB");
}

TEST_CASE("a limit of memory that nobody can mean is refused") {
  CHECK(ParseMemoryLimit("1M") == kMemoryLimitMin);
  CHECK(ParseMemoryLimit("1024T") == kMemoryLimitMax);
  for (const char* text : {"0", "24", "1023K", "1025T"}) {
    INFO(text);
    const auto parsed = ParseMemoryLimit(text);
    REQUIRE(!parsed);
    CHECK(parsed.error().remedy == "give 1M to 1024T, such as 24G");
  }
  CHECK(!ParseMemoryLimit("much"));
}

TEST_CASE("of a limit that several share, each may have what the others have not") {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  const struct {
    std::uint64_t limit, others, allowance;
  } kCases[] = {
      {0, 0, 0},          // no limit
      {0, 100, 0},        //
      {100, 0, 100},      // alone
      {100, 30, 70},      //
      {100, 99, 1},       //
      {100, 100, 1},      // nothing is left, and 0 would be no limit
      {100, 101, 1},      // above the limit
      {100, kMost, 1},    //
      {kMost, kMost, 1},  //
  };
  for (const auto& [limit, others, allowance] : kCases) {
    INFO(limit << " " << others);
    CHECK(MemoryAllowance(limit, others) == allowance);
  }
}

TEST_CASE("of two limits the smaller one counts, if there is one") {
  CHECK(SmallerLimit(0, 0) == 0);
  CHECK(SmallerLimit(5, 0) == 5);
  CHECK(SmallerLimit(0, 5) == 5);
  CHECK(SmallerLimit(5, 6) == 5);
  CHECK(SmallerLimit(6, 5) == 5);
}
