#include "daemon/install_paths.h"

namespace xschedd {
const char kDefaultConfigPath[] = XSCHEDD_CONFIG_PATH;
}  // namespace xschedd
