// The daemon's answers as text for people. Every number carries its unit; control characters in text from clients are
// replaced before it is printed. Thread rule: pure functions, but for the time zone that RenderEvent reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "admin.pb.h"
#include "tools/xschedctl/device_memory.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/unscheduled.h"

namespace xschedd::ctl {

// "(2 clients of other users not shown)" for a user; empty: there are none.
std::string LeftOutNote(std::uint32_t count, std::string_view what);

// `unscheduled`: rows after the clients; null: not requested. `memory`: null: not requested.
std::string RenderClients(const v1::ListClientsResponse& answer, const TextStyle& style,
                          const UnscheduledProcesses* unscheduled = nullptr, const DeviceMemory* memory = nullptr);
std::string RenderDevices(const v1::ListClientsResponse& answer, const TextStyle& style);
std::string RenderChange(const v1::ChangeResponse& answer, bool dry_run, const TextStyle& style);
std::string RenderPolicy(const v1::Policy& policy);
std::string RenderEvent(const v1::Event& event);
std::string RenderStats(const v1::Stats& stats);
std::string RenderExplain(std::uint64_t pid, const v1::ExplainResponse& answer, const TextStyle& style);

}  // namespace xschedd::ctl
