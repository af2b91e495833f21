// The configuration of a daemon that accepts devices as clients describe them, as for a software GPU. Thread rule:
// pure.
#pragma once

#include "daemon/config/config.h"

namespace xschedd::test {

inline Config Believing() {
  Config config;
  config.software_gpu = true;
  return config;
}

}  // namespace xschedd::test
