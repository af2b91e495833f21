// The daemon's answers as JSON, for --json. Field names are those of the protocol, with units in them; enumerations are
// the words of names.h; an absent optional is null. docs/reference/json.md says what may change, and the schemas in
// tools/xschedctl/schema are compared with real answers. Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "admin.pb.h"
#include "tools/xschedctl/device_memory.h"
#include "tools/xschedctl/unscheduled.h"

namespace xschedd::ctl {

// Fields stay in the order in which they are written here: people read this, too.
using Json = nlohmann::ordered_json;

// `memory`: null: not known.
Json ToJson(const v1::ListClientsResponse& answer, const DeviceMemory* memory = nullptr);
Json ToJson(const UnscheduledProcesses& unscheduled, const DeviceMemory* memory = nullptr);
Json ToJson(const v1::ChangeResponse& answer, bool dry_run);
Json ToJson(const v1::Policy& policy);
Json ToJson(const v1::Event& event);
Json ToJson(const v1::Stats& stats);
Json ToJson(std::uint64_t pid, const v1::ExplainResponse& answer);
Json ToJson(const v1::GetVersionResponse& answer);

// The version of all documents: incremented when a field is removed or changes its meaning.
inline constexpr int kSchemaVersion = 1;

// A document of --json, on a line of its own: the object `json` preceded by its kind, "schema": "xschedctl/ps/1".
std::string Document(std::string_view kind, const Json& json);

// One document on one line with its line feed. Invalid UTF-8 is replaced, never an error.
std::string Line(const Json& json);

}  // namespace xschedd::ctl
