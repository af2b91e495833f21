// Which clients an administrator means (admin.proto's Selector). Thread rule: pure functions.
#pragma once

#include <string>

#include "admin.pb.h"
#include "daemon/registry/registry.h"

namespace xschedd {

// Names nobody, and does not say "all".
bool IsEmpty(const v1::Selector& selector);

// All that is set fits.
bool Matches(const v1::Selector& selector, const Client& client);

// For a message: "pid 4711, uid 1000".
std::string Describe(const v1::Selector& selector);

}  // namespace xschedd
