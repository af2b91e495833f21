// The configuration of a daemon that believes what clients say of their devices, which are no machine's. Thread rule:
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
