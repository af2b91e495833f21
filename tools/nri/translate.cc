#include "tools/nri/translate.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "common/byte_size.h"
#include "common/latency.h"
#include "common/memory_limit.h"
#include "common/priority.h"
#include "daemon/registry/limits.h"
#include "tools/xschedctl/units.h"

namespace xschedd::nri {
namespace {

constexpr std::string_view kPrefix = kAnnotationPrefix;
constexpr std::string_view kNames[] = {"priority", "weight", "latency", "group", "memory"};
constexpr std::size_t kIdBytes = 32;  // of the container's id: 128 bits
constexpr std::size_t kShownBytes = 64;
constexpr std::size_t kMaxLabelValueBytes = 253;  // of a pod's name in Kubernetes

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Safe in a log line, and as a label: a pod's author may have written anything.
std::string Clean(std::string_view text, std::size_t limit) {
  std::string clean(text.substr(0, limit));
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c < ' ' || c > '~' || c == '"'; }, '?');
  return clean;
}

std::string Quoted(const std::string& text) {
  return "\"" + Clean(text, kShownBytes) + "\"";
}

struct Annotation {
  std::string key;
  std::string value;
};

class Translator {
 public:
  Translator(const api::PodSandbox& pod, const api::Container& container, const NamespaceSettings& bounds)
      : pod_(pod), container_(container), bounds_(bounds) {}

  Plan Run() {
    ReadPriority();
    ReadWeight();
    ReadLatency();
    ReadGroup();
    ReadMemory();
    FindUnknown();
    plan_.touches = is_annotated_ || AsksForGpu(container_);
    v1::Claim& claim = plan_.claim;
    claim.set_name(ClaimName(container_.id()));
    claim.set_has_socket(true);
    claim.set_ceiling(bounds_.ceiling);
    claim.set_weight_ceiling(bounds_.weight_ceiling);
    if (!claim.has_priority() && bounds_.priority) claim.set_priority(*bounds_.priority);
    Label("namespace", pod_.namespace_());
    Label("pod", pod_.name());
    Label("container", container_.name());
    return std::move(plan_);
  }

 private:
  // The container's own, else the pod's.
  std::optional<Annotation> Find(std::string_view name) {
    const std::string general = std::string(kPrefix) + std::string(name);
    for (const std::string& key : {general + ".container." + container_.name(), general}) {
      const auto found = pod_.annotations().find(key);
      if (found == pod_.annotations().end()) continue;
      is_annotated_ = true;
      return Annotation{key, found->second};
    }
    return std::nullopt;
  }

  void Say(const std::string& what) { plan_.lines.push_back(ContainerText(pod_, container_) + ": " + what); }
  void SayWrong(const Annotation& annotation, const Error& error) {
    Say(Clean(annotation.key, kPrefix.size() + kShownBytes) + ": " + error.Line() + "; it is ignored");
  }
  void SayAbove(const char* what, const std::string& requested, const std::string& ceiling) {
    Say(std::string(what) + " " + requested + " is above " + ceiling + ", the ceiling of namespace " +
        Clean(pod_.namespace_(), kShownBytes) + "; it gets " + ceiling);
  }

  void ReadPriority() {
    const auto found = Find("priority");
    if (!found) return;
    const Result<int> priority = ParsePriority(Clean(found->value, kShownBytes));
    if (!priority) return SayWrong(*found, priority.error());
    if (*priority > bounds_.ceiling) SayAbove("priority", std::to_string(*priority), std::to_string(bounds_.ceiling));
    plan_.claim.set_priority(std::min(*priority, bounds_.ceiling));
  }

  void ReadWeight() {
    const auto found = Find("weight");
    if (!found) return;
    const Result<std::uint32_t> weight = ctl::ParseWeight(Clean(found->value, kShownBytes));
    if (!weight) return SayWrong(*found, weight.error());
    if (*weight > bounds_.weight_ceiling)
      SayAbove("weight", std::to_string(*weight), std::to_string(bounds_.weight_ceiling));
    plan_.claim.set_weight(std::min(*weight, bounds_.weight_ceiling));
  }

  void ReadLatency() {
    const auto found = Find("latency");
    if (!found) return;
    const Result<Latency> latency = ParseLatency(Clean(found->value, kShownBytes));
    if (!latency) return SayWrong(*found, latency.error());
    plan_.claim.set_latency(std::string(LatencyText(*latency)));
  }

  // Groups of the same name in two namespaces are different ones: nobody joins another's group by knowing its name.
  void ReadGroup() {
    const auto found = Find("group");
    if (!found) return;
    const std::string group = pod_.namespace_() + "/" + found->value;
    if (found->value.empty() || group.size() > kMaxGroupNameBytes || Clean(group, group.size()) != group) {
      return SayWrong(*found, {Quoted(found->value) + " cannot be the name of a group",
                               "give printable text, with the namespace's name at most " +
                                   std::to_string(kMaxGroupNameBytes) + " bytes"});
    }
    plan_.claim.set_group(group);
  }

  // A container may have less than its namespace gives, not more.
  void ReadMemory() {
    std::uint64_t limit = bounds_.memory;
    if (const auto found = Find("memory")) {
      const Result<std::uint64_t> requested = ParseMemoryLimit(Clean(found->value, kShownBytes));
      if (!requested) {
        SayWrong(*found, requested.error());
      } else {
        if (limit != 0 && *requested > limit) SayAbove("memory", ByteSizeText(*requested), ByteSizeText(limit));
        limit = SmallerLimit(*requested, limit);
      }
    }
    if (limit != 0) plan_.claim.set_memory_limit(limit);
  }

  // Otherwise nobody would notice a mistyped name.
  void FindUnknown() {
    std::vector<std::string> unknown;
    for (const auto& [key, value] : pod_.annotations()) {
      if (!StartsWith(key, kPrefix)) continue;
      const std::string_view rest = std::string_view(key).substr(kPrefix.size());
      const auto fits = [&](std::string_view name) {
        return rest == name || StartsWith(rest, std::string(name) + ".container.");
      };
      if (!std::any_of(std::begin(kNames), std::end(kNames), fits)) unknown.push_back(key);
    }
    if (unknown.empty()) return;
    is_annotated_ = true;
    const std::string& first = *std::min_element(unknown.begin(), unknown.end());
    Say("there is no annotation " + Quoted(first) + "; xschedd.io/ has priority, weight, latency, group and memory");
  }

  void Label(const char* name, const std::string& value) {
    if (!value.empty()) (*plan_.claim.mutable_labels())[name] = Clean(value, kMaxLabelValueBytes);
  }

  const api::PodSandbox& pod_;
  const api::Container& container_;
  const NamespaceSettings& bounds_;
  bool is_annotated_ = false;
  Plan plan_;
};

}  // namespace

std::string ClaimName(const std::string& container_id) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (container_id.size() < kIdBytes || !std::all_of(container_id.begin(), container_id.end(), is_hex)) return {};
  return kClaimPrefix + container_id.substr(0, kIdBytes);
}

bool AsksForGpu(const api::Container& container) {
  for (const api::LinuxDevice& device : container.linux().devices())
    if (device.path() == "/dev/kfd" || StartsWith(device.path(), "/dev/nvidia")) return true;
  for (const api::CDIDevice& device : container.cdi_devices())
    if (StartsWith(device.name(), "amd.com/gpu") || StartsWith(device.name(), "nvidia.com/gpu")) return true;
  for (const std::string& variable : container.env()) {
    for (const std::string_view name : {"NVIDIA_VISIBLE_DEVICES=", "AMD_VISIBLE_DEVICES="}) {
      if (!StartsWith(variable, name)) continue;
      const std::string_view value = std::string_view(variable).substr(name.size());
      if (!value.empty() && value != "void" && value != "none") return true;
    }
  }
  return false;
}

Plan Translate(const api::PodSandbox& pod, const api::Container& container, const Settings& settings) {
  return Translator(pod, container, settings.Of(pod.namespace_())).Run();
}

std::string SettingsText(const v1::Claim& claim) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + value;
  };
  if (claim.has_priority()) add("priority", std::to_string(claim.priority()));
  if (claim.has_weight()) add("weight", std::to_string(claim.weight()));
  if (!claim.latency().empty()) add("latency", claim.latency());
  if (!claim.group().empty()) add("group", claim.group());
  if (claim.has_memory_limit()) add("memory", ByteSizeText(claim.memory_limit()));
  return text.empty() ? "no settings of its own" : text;
}

std::string PodText(const api::PodSandbox& pod) {
  return "pod " + Clean(pod.namespace_(), kShownBytes) + "/" + Clean(pod.name(), kShownBytes);
}

std::string ContainerText(const api::PodSandbox& pod, const api::Container& container) {
  return PodText(pod) + ", container " + Clean(container.name(), kShownBytes);
}

}  // namespace xschedd::nri
