#include "daemon/registry/claim.h"

#include <algorithm>
#include <string_view>

#include "common/memory_limit.h"
#include "common/priority.h"
#include "daemon/policy/types.h"
#include "daemon/registry/limits.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

constexpr std::size_t kShownTextBytes = 64;  // of text that is quoted in an error

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Safe as the name of a folder, on a command line and in a log.
bool IsWord(std::string_view text, std::size_t limit) {
  const auto fits = [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; };
  return !text.empty() && text.size() <= limit && IsLetterOrDigit(text[0]) &&
         std::all_of(text.begin(), text.end(), fits);
}

bool IsPrintable(const std::string& text) {
  return CleanText(text, text.size()) == text;
}

std::string Quoted(const std::string& text) {
  return "\"" + CleanText(text, kShownTextBytes) + "\"";
}

// "/a/b": each cgroup below the root can be written in only one way.
bool IsCgroupPath(const std::string& path) {
  if (path.size() < 2 || path.front() != '/' || path.back() == '/' || !IsPrintable(path)) return false;
  const std::string closed = path + "/";
  for (const std::string_view part : {"//", "/./", "/../"})
    if (closed.find(part) != std::string::npos) return false;
  return true;
}

Result<void> CheckWeight(const std::string& what, std::optional<std::uint32_t> weight) {
  const policy::Limits limits = policy::kWeightLimits;
  if (!weight || (*weight >= limits.min && *weight <= limits.max)) return {};
  return Fail(what + " " + std::to_string(*weight) + " is out of range",
              "give a number from " + std::to_string(limits.min) + " to " + std::to_string(limits.max));
}

Result<void> CheckPriority(const std::string& what, std::optional<int> priority) {
  if (!priority || IsPriority(*priority)) return {};
  return Fail(what + " " + std::to_string(*priority) + " is out of range", "give a number from -100 to 100");
}

Result<void> CheckMembers(const Claim& claim) {
  if (claim.cgroup.empty() && !claim.has_socket) {
    return Fail("a claim with neither a cgroup nor a socket applies to no process",
                "give the cgroup's path, or --socket");
  }
  if (claim.cgroup.empty()) return {};
  if (claim.cgroup.size() > kMaxClaimCgroupBytes || !IsCgroupPath(claim.cgroup)) {
    return Fail(Quoted(claim.cgroup) + " is not the path of a cgroup below the root",
                "give it as in /proc/PID/cgroup (the line \"name=systemd\", or else \"0::\"), in at most " +
                    std::to_string(kMaxClaimCgroupBytes) + " bytes");
  }
  return {};
}

Result<void> CheckLabels(const ClaimLabels& labels) {
  if (labels.size() > kMaxLabels) {
    return Fail(
        "the claim has " + std::to_string(labels.size()) + " labels, and may have " + std::to_string(kMaxLabels),
        "leave some out");
  }
  std::size_t bytes = 0;
  for (const auto& [name, value] : labels) {
    if (!IsWord(name, kMaxLabelNameBytes)) {
      return Fail(Quoted(name) + " cannot be the name of a label",
                  "give up to " + std::to_string(kMaxLabelNameBytes) + " letters, digits, \".\", \"_\" and \"-\"");
    }
    if (!IsPrintable(value)) {
      return Fail("label " + name + ": its value has unprintable characters or a \"",
                  "give printable UTF-8 without \"");
    }
    bytes += name.size() + value.size();
  }
  if (bytes <= kMaxLabelBytes) return {};
  return Fail(
      "the labels have " + std::to_string(bytes) + " bytes together, more than " + std::to_string(kMaxLabelBytes),
      "shorten them, or leave some out");
}

}  // namespace

Result<void> Check(const Claim& claim) {
  if (!IsWord(claim.name, kMaxClaimNameBytes)) {
    return Fail(Quoted(claim.name) + " cannot be the name of a claim",
                "give up to " + std::to_string(kMaxClaimNameBytes) + " letters, digits, \".\", \"_\" and \"-\"");
  }
  if (auto checked = CheckMembers(claim); !checked) return checked;
  for (const auto& checked : {CheckPriority("priority", claim.priority), CheckPriority("ceiling", claim.ceiling),
                              CheckWeight("weight", claim.weight), CheckWeight("weight ceiling", claim.weight_ceiling),
                              claim.memory_limit ? CheckMemoryLimit(*claim.memory_limit) : Result<void>()})
    if (!checked) return checked;
  if (claim.priority && claim.ceiling && *claim.priority > *claim.ceiling) {
    return Fail("priority " + std::to_string(*claim.priority) + " is above the claim's own ceiling, " +
                    std::to_string(*claim.ceiling),
                "lower the one or raise the other");
  }
  if (claim.weight && claim.weight_ceiling && *claim.weight > *claim.weight_ceiling) {
    return Fail("weight " + std::to_string(*claim.weight) + " is above the claim's own ceiling, " +
                    std::to_string(*claim.weight_ceiling),
                "lower the one or raise the other");
  }
  if (claim.group.size() > kMaxGroupNameBytes || !IsPrintable(claim.group)) {
    return Fail(Quoted(claim.group) + " cannot be the name of a group",
                "give up to " + std::to_string(kMaxGroupNameBytes) + " bytes of printable UTF-8 without \"");
  }
  const std::uint64_t ttl_ms = claim.ttl_ns / policy::kNsPerMs;
  if (claim.ttl_ns != 0 && (ttl_ms < kMinClaimTtlMs || ttl_ms > kMaxClaimTtlMs)) {
    return Fail("a claim cannot live for " + std::to_string(ttl_ms) + " ms",
                "give 1 s to 366 days, or nothing: then it lives as long as its cgroup");
  }
  return CheckLabels(claim.labels);
}

std::string LabelOf(const Claim& claim, const std::string& name) {
  const auto found = claim.labels.find(name);
  return found == claim.labels.end() ? std::string() : found->second;
}

std::string LabelText(const Claim& claim) {
  if (const std::string job = LabelOf(claim, "job"); !job.empty()) {
    const std::string step = LabelOf(claim, "step");
    return "job " + job + (step.empty() ? "" : "." + step);
  }
  const std::string pod = LabelOf(claim, "pod");
  const std::string space = LabelOf(claim, "namespace");
  if (pod.empty()) return {};
  return "pod " + (space.empty() ? "" : space + "/") + pod;
}

std::string ClaimText(const Claim& claim) {
  const std::string label = LabelText(claim);
  return "claim \"" + claim.name + "\"" + (label.empty() ? "" : " of " + label);
}

}  // namespace xschedd
