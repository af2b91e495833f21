// Which clients an administrator means (admin.proto's Selector). Thread rule: pure functions.
#pragma once

#include <string>

#include "admin.pb.h"
#include "daemon/registry/registry.h"

namespace xschedd {

// Whether it has no condition and not `all`.
bool IsEmpty(const v1::Selector& selector);

// Whether the client matches all that is set; an empty selector matches none.
bool Matches(const v1::Selector& selector, const Client& client);

// For a message: "pid 4711, uid 1000".
std::string Describe(const v1::Selector& selector);

}  // namespace xschedd
