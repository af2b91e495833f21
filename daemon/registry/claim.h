// A claim: what a fleet's engine (Slurm, Kubernetes) has told this node about a job or a container, usually before it
// starts. It says to which processes it applies (those that connect from a cgroup or below it, or through the claim's
// own socket), what applies to them, and for how long. claim_table.h keeps all claims. Thread rule: values; pure
// functions.
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

// Limits of a claim; the largest possible saved state follows from them (state/saved_state.h).
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
  std::string cgroup;              // as in /proc/PID/cgroup; empty: it applies only to what connects through its socket
  std::uint64_t cgroup_inode = 0;  // of its directory when the claim was put (cgroups.h)
  bool has_socket = false;         // of its own (connections/claim_sockets.h)
  std::optional<int> priority;
  std::optional<int> ceiling;  // the most that rules, users and hints give; replaces the uid's default ceiling
  std::optional<std::uint32_t> weight;
  std::optional<std::uint32_t> weight_ceiling;
  std::optional<Latency> latency;
  std::optional<std::uint64_t> memory_limit;  // bytes on each device, for all its clients together
  std::string group;  // empty: clients name their own, and share it with no client outside the claim
  ClaimLabels labels;
  std::uint64_t ttl_ns = 0;      // 0: until its cgroup is gone, or, without one, until it is removed
  std::uint64_t expires_ns = 0;  // CLOCK_MONOTONIC; 0: never
  std::uint64_t id = 0;          // assigned by the table; stays when the claim is put again

  bool operator==(const Claim&) const = default;
};
using ClaimPtr = std::shared_ptr<const Claim>;

// Refuses what is out of range. It does not check `id`, `cgroup_inode` and `expires_ns`, which the daemon sets itself.
Result<void> Check(const Claim& claim);

// What the claim is for, for people to read, from the labels job and step, or namespace and pod: "job 17.0",
// "pod ml/web-1". Empty: it has no such label.
std::string LabelText(const Claim& claim);
// `claim "slurm-17.0" of job 17.0`
std::string ClaimText(const Claim& claim);

}  // namespace xschedd
