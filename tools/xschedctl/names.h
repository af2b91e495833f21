// Words for the protocol's enumerations, the same in tables and in JSON. A value that this xschedctl does not know (a
// newer daemon) is "unknown". Thread rule: pure functions.
#pragma once

#include <string_view>

#include "admin.pb.h"

namespace xschedd::ctl {

std::string_view Name(v1::ClientState state);
std::string_view Name(v1::PrioritySource source);
std::string_view Name(v1::EventKind kind);

}  // namespace xschedd::ctl
