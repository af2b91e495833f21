// Why a client waited: how it spent the last seconds on each device, by which rule and for whom it was held, and what
// an administrator could change. Thread rule: pure functions over the daemon's records; the daemon's one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/registry/past_clients.h"
#include "daemon/registry/registry.h"

namespace xschedd {

struct ExplainedDevice {
  std::string address;
  Account account;
  // Beside whom; all 0 for a client that has gone, whose neighbours of then are not known.
  std::uint64_t gpu_all_ns = 0;  // of all who are on the device now, in the same time
  // Of all clients of the same priority that had work meanwhile, including this one: its weight applies among them.
  std::uint64_t gpu_level_ns = 0;
  std::uint64_t weight_level = 0;
  std::string slice = {};  // what has become of its time slice, in words (slice_words.h); empty: none is wanted
};

struct ExplainedSpan {
  std::string device;
  HeldSpan span;
};

struct ExplainedCause {
  std::string device;
  HeldTotal total;
  std::string text;  // with the names of the settings that count
};

struct Remedy {
  std::string text;
  std::string command;  // as it must be typed; empty: there is none
};

struct Explanation {
  std::string command;
  Effective effective;
  std::uint64_t ended_ns = 0;  // how long ago the client ended; 0: it has not
  std::uint64_t to_ns = 0;     // the end of what is explained, CLOCK_MONOTONIC
  std::uint64_t observed_ns = 0;
  std::uint64_t held_ns = 0;  // over all devices
  std::vector<ExplainedDevice> devices;
  std::vector<ExplainedCause> causes;  // largest first
  std::vector<ExplainedSpan> spans;    // oldest first
  std::string summary;
  std::string benefit;           // what holding those below gives it (benefit_words.h)
  std::vector<Remedy> remedies;  // most effective first
  PassedCounts passed;
};

struct ExplainContext {
  const Registry& registry;
  const HistoryPool& histories;
  const Config& config;
  std::uint64_t now_ns;
  // Who asks, where that is neither an administrator nor a reader: others' command lines are not shown then.
  std::optional<std::uint32_t> only_uid = {};
  bool is_admin = true;  // who asks
};

// `seconds` 0: as far back as the daemon remembers. Of one that has gone, the last seconds before its end.
Explanation ExplainClient(const Client& client, std::uint32_t seconds, const ExplainContext& context);
Explanation ExplainClient(const PastClient& client, std::uint32_t seconds, const ExplainContext& context);

}  // namespace xschedd
