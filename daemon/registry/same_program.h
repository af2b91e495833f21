// Whether two clients are processes of one program, so that what was learnt of one may hold for the other: a service
// that was started again, or one process more of it. They have the same executable and command line, and belong to the
// same principal, or to claims that root made for the same namespace or user: a container that is started again is
// another place. A command line is only its user's word, so it counts for nobody else. Thread rule: pure.
#pragma once

#include "daemon/registry/client.h"

namespace xschedd {

struct Program {
  const ClientIdentity& identity;
  const PrincipalPtr& principal;
  const ClaimPtr& claim;
};

bool IsSame(const Program& one, const Program& other);

}  // namespace xschedd
