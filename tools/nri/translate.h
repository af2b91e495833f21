// From a container of a pod to a claim: what the pod's annotations ask for, in the bounds of its namespace.
//
//   xschedd.io/priority, /weight, /latency, /group      of all containers of the pod
//   xschedd.io/priority.container.NAME, ...              of container NAME; goes before the former
//
// Touched are containers that are annotated, and those that ask for a GPU: they are bounded, too. Thread rule: pure.
#pragma once

#include <string>
#include <vector>

#include "claim.pb.h"
#include "nri.pb.h"
#include "tools/nri/settings.h"

namespace xschedd::nri {

inline constexpr char kClaimPrefix[] = "nri-";
inline constexpr char kAnnotationPrefix[] = "xschedd.io/";

struct Plan {
  bool touches = false;
  v1::Claim claim;                 // with a socket; also of a container that it does not touch
  std::vector<std::string> lines;  // what the pod asked for in vain, one line each
};

// The claim's name, of the container's id; empty: that is no id.
std::string ClaimName(const std::string& container_id);

// By device node, CDI name, or the variable by which NVIDIA's and AMD's runtimes are asked.
bool AsksForGpu(const api::Container& container);

Plan Translate(const api::PodSandbox& pod, const api::Container& container, const Settings& settings);

// What a claim says for its container, for people: "priority 20, latency strict".
std::string SettingsText(const v1::Claim& claim);

// "pod ml/web-1", whatever its names contain.
std::string PodText(const api::PodSandbox& pod);
// "pod ml/web-1, container main"
std::string ContainerText(const api::PodSandbox& pod, const api::Container& container);

}  // namespace xschedd::nri
