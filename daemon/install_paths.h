// Paths of installed files. A library of its own, because the portable programs (tools/dist) are linked with other
// paths. Thread rule: constants.
#pragma once

namespace xschedd {
extern const char kDefaultConfigPath[];
}  // namespace xschedd
