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

struct Plan {
  bool touches = false;
  v1::Claim claim;                 // with a socket; only where it touches
  std::vector<std::string> lines;  // what the pod asked for in vain, one line each
};

// The claim's name, of the container's id; empty: that is no id.
std::string ClaimName(const std::string& container_id);

// By device node, CDI name, or the variable by which NVIDIA's and AMD's runtimes are asked.
bool AsksForGpu(const api::Container& container);

Plan Translate(const api::PodSandbox& pod, const api::Container& container, const Settings& settings);

// "pod ml/web-1, container main", whatever their names contain.
std::string ContainerText(const api::PodSandbox& pod, const api::Container& container);

}  // namespace xschedd::nri
