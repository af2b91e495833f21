// The owners among which the GPU is divided first, before each part is divided among the owner's processes. Thread
// rule: pure function.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/registry/client.h"

namespace xschedd {

// Equal for clients of one owner: of one job, pod or user by the labels of their claims, else of one claim; without a
// claim, of one user (ClientIdentity::owner) on the host or in one container that root has made.
std::string ShareOwnerOf(const ClaimPtr& claim, const ClientIdentity& who);
inline std::string ShareOwnerOf(const Client& client) {
  return ShareOwnerOf(client.claim, client.identity);
}

}  // namespace xschedd
