// The two framings in which a container engine speaks with an NRI plugin, one inside the other: NRI's multiplexer,
// several connections over one socket, and in each connection ttrpc's messages. Both headers are big-endian. What is
// read is bounded; after an error the socket cannot be used any more. Thread rule: one user at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd::nri {

inline constexpr std::size_t kTtrpcHeaderBytes = 10;
inline constexpr std::size_t kMaxTtrpcBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxMuxBytes = kMaxTtrpcBytes + kTtrpcHeaderBytes;
// The limit for written frames: the other end reads a whole frame into a buffer of this size.
inline constexpr std::size_t kWrittenMuxBytes = 4'096;

struct MuxFrame {
  std::uint32_t connection = 0;
  std::string payload;
  bool operator==(const MuxFrame&) const = default;
};

struct TtrpcFrame {
  enum Type : std::uint8_t { kRequest = 1, kResponse = 2, kData = 3 };
  std::uint32_t stream = 0;
  std::uint8_t type = kRequest;
  std::uint8_t flags = 0;
  std::string data;
  bool operator==(const TtrpcFrame&) const = default;
};

// In as many frames as are needed.
std::string EncodeMux(std::uint32_t connection, std::string_view bytes);
// `data` has at most kMaxTtrpcBytes.
std::string EncodeTtrpc(const TtrpcFrame& frame);

// Bytes that have arrived and are not read yet.
class Arrived {
 public:
  void Add(std::string_view bytes);
  std::string_view Bytes() const { return std::string_view(bytes_).substr(read_); }
  void Drop(std::size_t count) { read_ += count; }

 private:
  std::string bytes_;
  std::size_t read_ = 0;
};

class MuxReader {
 public:
  void Add(std::string_view bytes) { arrived_.Add(bytes); }
  // nullopt: no whole frame has arrived.
  Result<std::optional<MuxFrame>> Next();

 private:
  Arrived arrived_;
};

class TtrpcReader {
 public:
  void Add(std::string_view bytes) { arrived_.Add(bytes); }
  Result<std::optional<TtrpcFrame>> Next();

 private:
  Arrived arrived_;
};

}  // namespace xschedd::nri
