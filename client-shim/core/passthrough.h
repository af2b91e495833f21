// The passthrough rules in force in this process, and how many calls they have let through. Rules come from
// XSCHEDD_PASSTHROUGH and from the daemon, whose configuration may change at any time. Each change begins a new epoch,
// so that threads that wait at a gate check the rules again. Thread rule: Configure and TakeCounts, one thread (the
// constructor's, later the agent's); the rest, any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client-shim/core/caller_library.h"
#include "client-shim/core/interface.h"
#include "client-shim/core/passthrough_rules.h"

namespace xschedd::shim {

class Passthrough {
 public:
  // `environment`: a list of entries. Each one that cannot be used is reported once. The stub's names outlive this
  // object.
  Passthrough(std::string environment, const StubTable& stub);

  // `entries`: what the daemon wants passed through, in addition to the environment's.
  void Configure(const std::vector<std::string>& entries);

  // To be read before Match, so that a change in between is noticed. acquire: see Configure.
  std::uint32_t Epoch() const { return epoch_.load(std::memory_order_acquire); }
  const std::atomic<std::uint32_t>& EpochWord() const { return epoch_; }
  // Whether there are rules. relaxed: Match reads the rules themselves.
  bool Any() const { return active_.load(std::memory_order_relaxed) != nullptr; }
  // The counter of the rule that lets the call through; null: the call is gated.
  abi::Counter* Match(const Submission& submission, const Vendor& vendor) {
    // acquire: the rules behind the pointer are complete.
    const Active* active = active_.load(std::memory_order_acquire);
    if (active == nullptr) return nullptr;
    const int found = active->rules.Match(submission, vendor, &callers_);
    return found == PassthroughRules::kNone ? nullptr : active->counters[static_cast<std::size_t>(found)];
  }

  // By rule, as it is written: the calls that it has let through since the last TakeCounts. Rules without any are left
  // out.
  std::vector<std::pair<std::string, std::uint64_t>> TakeCounts();

 private:
  struct Active {
    PassthroughRules rules;
    std::vector<abi::Counter*> counters;  // by the rule's index
  };
  struct Count {
    abi::Counter passed{0};
    std::uint64_t reported = 0;
  };
  void Add(std::string_view text, const char* source, std::vector<PassthroughEntry>* entries);

  const std::string environment_;
  const char* const* const entry_names_;
  const std::uint32_t entry_count_;
  CallerLibraries callers_;
  std::atomic<const Active*> active_{nullptr};       // null: no rules
  std::vector<std::unique_ptr<const Active>> kept_;  // all so far, because old ones may be in use
  std::atomic<std::uint32_t> epoch_{0};
  std::vector<PassthroughEntry> entries_;  // of `active_`
  std::map<std::string, Count> counts_;    // by rule as written; entries are never removed
  std::set<std::string> reported_;         // the warnings so far
};

}  // namespace xschedd::shim
