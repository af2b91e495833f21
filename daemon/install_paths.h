// Where an installation has its files. By itself: the portable programs (tools/dist) are linked with other paths.
// Thread rule: constants.
#pragma once

namespace xschedd {
extern const char kDefaultConfigPath[];
}  // namespace xschedd
