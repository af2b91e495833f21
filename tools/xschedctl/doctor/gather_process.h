// What /proc says about a process. Thread rule: reads files; main thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tools/xschedctl/doctor/facts.h"

namespace xschedd::ctl {

// `shim`, `client_socket`: the paths to look for below its root, unless its own environment names others.
ProcessFacts GatherProcess(std::uint64_t pid, const std::string& shim, const std::string& client_socket);
RootFacts GatherRoot(const std::string& dir, const std::string& shim, const std::string& library,
                     const std::string& client_socket);

// `block`: NAME=VALUE strings, each ended by a zero byte, as in /proc/PID/environ.
std::map<std::string, std::string> ParseEnvironment(const std::string& block);

// Whether this libhsa-runtime64 is the software GPU.
bool IsSoftwareGpu(const std::string& path);

// From the text of /proc/PID/maps: which libraries of xschedd and of the vendors are mapped.
void ReadMaps(const std::string& maps, ProcessFacts* facts);

}  // namespace xschedd::ctl
