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
  // Its neighbours; all 0 for a client that has ended, whose neighbours are no longer known.
  std::uint64_t gpu_all_ns = 0;  // of all clients on the device now, in the same time
  // Of all clients of its priority that had work meanwhile, including this one. weight / weight_level is the part that
  // is due to it, owners first.
  std::uint64_t gpu_level_ns = 0;
  std::uint64_t weight_level = 0;
  std::string slice = {};   // its time slice in force, in words (slice_words.h); empty: the driver's own
  std::string memory = {};  // in words (memory_words.h); empty: not known
};

struct ExplainedSpan {
  std::string device;
  HeldSpan span;
};

struct ExplainedCause {
  std::string device;
  HeldTotal total;
  std::string text;  // names the settings behind it
};

struct Remedy {
  std::string text;
  std::string command;  // to type as it is; empty: none
};

struct Explanation {
  std::string command;
  Effective effective;
  std::uint64_t ended_ns = 0;  // how long ago the client ended; 0: it has not
  std::uint64_t to_ns = 0;     // the end of the time explained, CLOCK_MONOTONIC
  std::uint64_t observed_ns = 0;
  std::uint64_t held_ns = 0;  // over all devices
  std::vector<ExplainedDevice> devices;
  std::vector<ExplainedCause> causes;  // largest first
  std::vector<ExplainedSpan> spans;    // oldest first
  std::string summary;
  std::string benefit;  // what it gains by holding those below (benefit_words.h), or others by its joining their turns
                        // (filling_words.h)
  std::string queue_priority;    // queue_priority_words.h
  std::vector<Remedy> remedies;  // most effective first
  PassedCounts passed;
};

struct ExplainContext {
  const Registry& registry;
  const HistoryPool& histories;
  const Config& config;
  std::uint64_t now_ns;
  // The caller, if it is neither an administrator nor a reader: it does not see the command lines of clients that it
  // may not manage.
  std::optional<Principal> only_of = {};
  bool is_admin = true;  // the caller is an administrator
};

// `seconds` 0: as far back as the daemon remembers. For a client that has ended: the seconds before its end.
Explanation ExplainClient(const Client& client, std::uint32_t seconds, const ExplainContext& context);
Explanation ExplainClient(const PastClient& client, std::uint32_t seconds, const ExplainContext& context);

}  // namespace xschedd
