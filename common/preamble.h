// What a shim and the daemon say to each other on a fresh connection, before the same socket speaks gRPC.
//
//   client → daemon   PreambleHello (fixed size)
//   daemon → client   PreambleWelcome, with board, ledger and eventfd attached by SCM_RIGHTS (in this order) if status
//                     is kOk, and with nothing attached otherwise; then the daemon closes unless status is kOk
//
// A connection whose first four bytes are not kHelloMagic is taken for a plain gRPC client ("PRI ") and gets no board.
// Both sides then pass the descriptor to gRPC (AddInsecureChannelFromFd, CreateInsecureChannelFromFd).
// The two messages never change, so that any two releases can at least tell each other that they do not match.
// Thread rule: plain data.
#pragma once

#include <cstdint>
#include <type_traits>

namespace xschedd {

inline constexpr char kHelloMagic[4] = {'X', 'S', 'H', '1'};
inline constexpr char kWelcomeMagic[4] = {'X', 'S', 'W', '1'};

struct PreambleHello {
  char magic[4];
  std::uint32_t abi_version;  // the newest that the client speaks; in a second attempt the daemon's (versions.h)
  std::uint64_t layout_hash;
};

enum class PreambleStatus : std::uint32_t {
  kOk = 0,
  kVersionMismatch = 1,  // the daemon does not speak that version: the client tries the daemon's, or, if it cannot,
                         // runs unscheduled and says so once
  kQuota = 2,            // the uid has too many connections
  kDraining = 3,         // the daemon takes no new clients at the moment
  kNotVisible = 4,       // the daemon cannot see the process: it is outside the daemon's pid namespace
};

inline constexpr int kPreambleDescriptors = 3;  // board, ledger, eventfd

struct PreambleWelcome {
  char magic[4];
  PreambleStatus status;
  std::uint32_t abi_version;  // kOk: the memory's, which is the hello's; else the newest that the daemon speaks
  std::uint32_t reserved;
  std::uint64_t layout_hash;  // of that version
  char token[16];             // echoed in the first message of the session: an assertion, not a secret
};

static_assert(sizeof(PreambleHello) == 16 && sizeof(PreambleWelcome) == 40);
static_assert(std::is_trivially_copyable_v<PreambleHello> && std::is_trivially_copyable_v<PreambleWelcome>);

}  // namespace xschedd
