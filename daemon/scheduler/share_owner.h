// Between whom the GPU is divided first, before it is divided between the processes of each. Thread rule: pure
// function.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/registry/client.h"

namespace xschedd {

// Equal for clients of one owner: of one job, pod or user by the labels of their claims, else of one claim; without a
// claim, of one user (ClientIdentity::owner).
std::string ShareOwnerOf(const ClaimPtr& claim, std::uint32_t uid);
inline std::string ShareOwnerOf(const Client& client) {
  return ShareOwnerOf(client.claim, client.identity.owner);
}

}  // namespace xschedd
