// What /proc says of a process. Thread rule: reads files; main thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tools/xschedctl/doctor/facts.h"

namespace xschedd::ctl {

// `shim`, `client_socket`: what is to be there below its root, where its own environment names nothing else.
ProcessFacts GatherProcess(std::uint64_t pid, const std::string& shim, const std::string& client_socket);
RootFacts GatherRoot(const std::string& dir, const std::string& shim, const std::string& library,
                     const std::string& client_socket);

// NAME=VALUE texts, each ended by a zero, as /proc/PID/environ has them.
std::map<std::string, std::string> ParseEnvironment(const std::string& block);

// Whether this libhsa-runtime64 is the software GPU.
bool IsSoftwareGpu(const std::string& path);

// From the text of /proc/PID/maps: which of our libraries and of the vendors' it has.
void ReadMaps(const std::string& maps, ProcessFacts* facts);

}  // namespace xschedd::ctl
