// A claim: what a fleet's engine (Slurm, Kubernetes) has told this node of a job or a container, mostly before it
// starts. It says who (the processes that connect from a cgroup or below it, or by the claim's own socket), what counts
// for them, and for how long.
// claim_table.h keeps all of them. Thread rule: values; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/latency.h"
#include "common/result.h"

namespace xschedd {

// What a claim may be; the largest state that can come to be is made of these (state/saved_state.h).
inline constexpr std::size_t kMaxClaims = 1'024;
inline constexpr std::size_t kMaxClaimNameBytes = 128;
inline constexpr std::size_t kMaxClaimCgroupBytes = 1'024;
inline constexpr std::size_t kMaxLabels = 16;
inline constexpr std::size_t kMaxLabelNameBytes = 63;
inline constexpr std::size_t kMaxLabelBytes = 1'024;  // of all labels' names and values together
inline constexpr std::uint64_t kMinClaimTtlMs = 1'000;
inline constexpr std::uint64_t kMaxClaimTtlMs = std::uint64_t{366} * 24 * 3'600 * 1'000;

using ClaimLabels = std::map<std::string, std::string>;

struct Claim {
  std::string name;
  std::string cgroup;              // as in /proc/PID/cgroup; empty: only who connects by its socket has it
  std::uint64_t cgroup_inode = 0;  // of its directory when it was named (cgroups.h)
  bool has_socket = false;         // of its own (connections/claim_sockets.h)
  std::optional<int> priority;
  std::optional<int> ceiling;  // the most that rules, users and hints give; counts in place of the uid's default one
  std::optional<std::uint32_t> weight;
  std::optional<std::uint32_t> weight_ceiling;
  std::optional<Latency> latency;
  std::string group;  // empty: clients say it themselves, and share it with nobody outside of the claim
  ClaimLabels labels;
  std::uint64_t ttl_ns = 0;      // 0: until its cgroup is gone, or, without one, until it is removed
  std::uint64_t expires_ns = 0;  // CLOCK_MONOTONIC; 0: never
  std::uint64_t id = 0;          // the table's: stays when it is put again

  bool operator==(const Claim&) const = default;
};
using ClaimPtr = std::shared_ptr<const Claim>;

// All but `id`, `cgroup_inode` and `expires_ns`, which its owner does not say.
Result<void> Check(const Claim& claim);

// What it is of, for people, from the labels job and step, or namespace and pod: "job 17.0", "pod ml/web-1"; empty: it
// has no such label.
std::string LabelText(const Claim& claim);
// `claim "slurm-17.0" of job 17.0`
std::string ClaimText(const Claim& claim);

}  // namespace xschedd
