#include "tools/nri/frames.h"

#include <algorithm>

namespace xschedd::nri {
namespace {

constexpr std::size_t kMuxHeaderBytes = 8;

void PutNumber(std::uint32_t number, std::string& out) {
  for (const int shift : {24, 16, 8, 0})
    out += static_cast<char>((number >> shift) & 0xff);
}

std::uint32_t NumberAt(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i)
    number = (number << 8) | static_cast<unsigned char>(bytes[i]);
  return number;
}

tl::unexpected<Error> TooLong(const char* what, std::size_t bytes, std::size_t limit) {
  return Fail(std::string(what) + " of " + std::to_string(bytes) + " bytes, more than " + std::to_string(limit));
}

}  // namespace

std::string EncodeMux(std::uint32_t connection, std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kWrittenMuxBytes);
    PutNumber(connection, out);
    PutNumber(static_cast<std::uint32_t>(part.size()), out);
    out += part;
    bytes.remove_prefix(part.size());
  }
  return out;
}

std::string EncodeTtrpc(const TtrpcFrame& frame) {
  std::string out;
  PutNumber(static_cast<std::uint32_t>(frame.data.size()), out);
  PutNumber(frame.stream, out);
  out += static_cast<char>(frame.type);
  out += static_cast<char>(frame.flags);
  return out + frame.data;
}

void Arrived::Add(std::string_view bytes) {
  bytes_.erase(0, read_);
  read_ = 0;
  bytes_ += bytes;
}

Result<std::optional<MuxFrame>> MuxReader::Next() {
  const std::string_view bytes = arrived_.Bytes();
  if (bytes.size() < kMuxHeaderBytes) return std::nullopt;
  const std::size_t length = NumberAt(bytes, 4);
  if (length > kMaxMuxBytes) return TooLong("a multiplexed frame", length, kMaxMuxBytes);
  if (bytes.size() < kMuxHeaderBytes + length) return std::nullopt;
  MuxFrame frame{NumberAt(bytes, 0), std::string(bytes.substr(kMuxHeaderBytes, length))};
  arrived_.Drop(kMuxHeaderBytes + length);
  return frame;
}

Result<std::optional<TtrpcFrame>> TtrpcReader::Next() {
  const std::string_view bytes = arrived_.Bytes();
  if (bytes.size() < kTtrpcHeaderBytes) return std::nullopt;
  const std::size_t length = NumberAt(bytes, 0);
  if (length > kMaxTtrpcBytes) return TooLong("a ttrpc message", length, kMaxTtrpcBytes);
  if (bytes.size() < kTtrpcHeaderBytes + length) return std::nullopt;
  TtrpcFrame frame{NumberAt(bytes, 4), static_cast<std::uint8_t>(bytes[8]), static_cast<std::uint8_t>(bytes[9]),
                   std::string(bytes.substr(kTtrpcHeaderBytes, length))};
  arrived_.Drop(kTtrpcHeaderBytes + length);
  return frame;
}

}  // namespace xschedd::nri
