// From a container of a pod to a claim: what the pod's annotations ask for, in the bounds of its namespace.
//
//   xschedd.io/priority, /weight, /latency, /group, /memory   of all containers of the pod
//   xschedd.io/priority.container.NAME, ...              of container NAME; takes precedence
//
// Containers that are annotated are changed, and so are those that ask for a GPU: bounds apply to them, too. Thread
// rule: pure.
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
  bool touches = false;            // the container is to be changed
  v1::Claim claim;                 // with a socket; also for a container that is not changed
  std::vector<std::string> lines;  // what the pod asked for and does not get, one line each
};

// The name of the claim of the container with this id; empty: that is not an id.
std::string ClaimName(const std::string& container_id);

// By device node, CDI name, or the variable that NVIDIA's and AMD's container runtimes read.
bool AsksForGpu(const api::Container& container);

Plan Translate(const api::PodSandbox& pod, const api::Container& container, const Settings& settings);

// What a claim says for its container, for people: "priority 20, latency strict".
std::string SettingsText(const v1::Claim& claim);

// "pod ml/web-1", whatever its names contain.
std::string PodText(const api::PodSandbox& pod);
// "pod ml/web-1, container main"
std::string ContainerText(const api::PodSandbox& pod, const api::Container& container);

}  // namespace xschedd::nri
