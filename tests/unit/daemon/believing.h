// The configuration of a daemon that believes what clients say about devices, which no machine has. Thread rule: pure.
#pragma once

#include "daemon/config/config.h"

namespace xschedd::test {

inline Config Believing() {
  Config config;
  config.software_gpu = true;
  return config;
}

}  // namespace xschedd::test
