// Collects facts about the system for `xschedctl doctor`. Thread rule: main thread, before gRPC has threads.
#pragma once

#include <cstdint>
#include <string>

#include "tools/xschedctl/doctor/facts.h"

namespace xschedd::ctl {

struct DoctorOptions {
  std::string runtime_dir;
  std::string shim;  // a path, or empty
  std::string hip;   // a libamdhip64, or empty
  std::uint64_t pid = 0;
  std::string root;
};

Facts Gather(const DoctorOptions& options);

}  // namespace xschedd::ctl
