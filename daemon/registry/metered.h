// How much of one client on one device the metrics already include; maintained by meter.h. Thread rule: the daemon's
// one thread.
#pragma once

#include <cstdint>
#include <memory>

namespace xschedd {

struct Claim;

// Numbers that only grow.
struct Usage {
  std::uint64_t gpu_ns = 0;
  std::uint64_t held_ns = 0;
  std::uint64_t launches = 0;
  std::uint64_t completions = 0;
  std::uint64_t passed = 0;
  std::uint64_t became_busy = 0;
  std::uint64_t became_idle = 0;
  std::uint64_t late = 0;
  std::uint64_t untracked_ns = 0;    // time while untracked, in which GPU time and launches are unknown
  std::uint64_t memory_refused = 0;  // allocations that limits of device memory refused

  bool operator==(const Usage&) const = default;
};

inline constexpr std::uint64_t Usage::*kUsageParts[] = {
    &Usage::gpu_ns,      &Usage::held_ns,     &Usage::launches, &Usage::completions,  &Usage::passed,
    &Usage::became_busy, &Usage::became_idle, &Usage::late,     &Usage::untracked_ns, &Usage::memory_refused};

inline void AddUsage(const Usage& from, Usage& to) {
  for (const auto part : kUsageParts)
    to.*part += from.*part;
}

inline constexpr std::uint32_t kNoAccount = 0xffff'ffff;

struct Metered {
  std::uint32_t account = kNoAccount;  // which new usage is added to; kNoAccount: not looked up yet
  std::uint64_t begun_ns = 0;          // when the client attached, or was taken over from an earlier daemon
  Usage base;                          // what its ledger showed at begun_ns; refusals: MemoryAccount
  Usage counted;                       // since begun_ns, and in an account
  // The daemon's own counts since begun_ns.
  std::uint64_t became_busy = 0;
  std::uint64_t became_idle = 0;
  std::uint64_t late = 0;
  std::uint64_t untracked_ns = 0;
  std::uint64_t untracked_since_ns = 0;  // 0: it is tracked
  // For whom it was held last: a client (0: nobody in particular), and the claim that it had then.
  std::uint64_t blocker = 0;
  std::shared_ptr<const Claim> blocker_claim;
  std::uint64_t waits_ns = 0;  // of Attachment::HeldNsAt: counted by blocker
};

}  // namespace xschedd
