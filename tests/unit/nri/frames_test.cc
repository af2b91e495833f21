// NRI's multiplexer and ttrpc's messages, byte by byte.
#include "tools/nri/frames.h"

#include "tests/catch.h"

using namespace xschedd::nri;
using namespace std::string_literals;

TEST_CASE("a frame of the multiplexer is a connection's number, a length and the bytes") {
  CHECK(EncodeMux(2, "abc") == "\0\0\0\x02\0\0\0\x03"s + "abc");
  CHECK(EncodeMux(1, "").empty());
  MuxReader reader;
  reader.Add("\0\0\0\x01\0\0\0\x02hi\0\0\0\x02\0\0\0\0\0\0"s);
  CHECK(**reader.Next() == MuxFrame{1, "hi"});
  CHECK(**reader.Next() == MuxFrame{2, ""});
  CHECK(!*reader.Next());
}

TEST_CASE("data beyond the other end's limit goes in several frames") {
  const std::string bytes(2 * kWrittenMuxBytes + 5, 'x');
  MuxReader reader;
  reader.Add(EncodeMux(1, bytes));
  std::string read;
  int frames = 0;
  for (auto next = reader.Next(); next && *next; next = reader.Next(), ++frames) {
    CHECK((*next)->payload.size() <= kWrittenMuxBytes);
    read += (*next)->payload;
  }
  CHECK(frames == 3);
  CHECK(read == bytes);
}

TEST_CASE("a ttrpc message is a length, a stream, a type, flags and the data") {
  const TtrpcFrame frame{0x01020304, TtrpcFrame::kResponse, 0, "data"};
  const std::string bytes = "\0\0\0\x04\x01\x02\x03\x04\x02\0"s + "data";
  CHECK(EncodeTtrpc(frame) == bytes);
  TtrpcReader reader;
  reader.Add(bytes + bytes.substr(0, 9));
  CHECK(**reader.Next() == frame);
  CHECK(!*reader.Next());
}

TEST_CASE("a message that arrives byte by byte is read once it is complete") {
  const TtrpcFrame frame{7, TtrpcFrame::kRequest, 1, std::string(300, '\xff')};
  MuxReader mux;
  TtrpcReader messages;
  int whole = 0;
  for (const char byte : EncodeMux(1, EncodeTtrpc(frame))) {
    mux.Add(std::string(1, byte));
    for (auto next = mux.Next(); next && *next; next = mux.Next()) {
      messages.Add((*next)->payload);
      const auto message = messages.Next();
      REQUIRE(message);
      if (!*message) continue;
      CHECK(**message == frame);
      ++whole;
    }
  }
  CHECK(whole == 1);
}

TEST_CASE("a length beyond the limit is an error that names both") {
  MuxReader mux;
  mux.Add("\0\0\0\x01\0\x40\0\x0b"s);  // one more than 4 MiB and a header
  REQUIRE(!mux.Next());
  CHECK(mux.Next().error().what == "a multiplexed frame of 4194315 bytes, more than 4194314");
  MuxReader largest;
  largest.Add("\0\0\0\x01\0\x40\0\x0a"s);
  REQUIRE(largest.Next());
  CHECK(!*largest.Next());
  TtrpcReader messages;
  messages.Add("\xff\xff\xff\xff\0\0\0\x01\x01\0"s);
  REQUIRE(!messages.Next());
  CHECK(messages.Next().error().what == "a ttrpc message of 4294967295 bytes, more than 4194304");
}
