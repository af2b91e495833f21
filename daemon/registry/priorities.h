// Effective priority = administrator's override, else the first rule that fits, else the client's hint, else 0; limited
// to the ceiling of the uid. Thread rule: pure function.
#pragma once

#include "daemon/config/config.h"
#include "daemon/registry/registry.h"

namespace xschedd {

Effective EffectivePriority(const Client& client, const Config& config);
// The same if the administrator's override were `admin`.
Effective EffectivePriority(const Client& client, std::optional<int> admin, const Config& config);

}  // namespace xschedd
