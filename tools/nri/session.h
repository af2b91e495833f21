// One connection with a container engine, from the registration to its end. Thread rule: one thread.
#pragma once

#include <string>

#include "common/result.h"
#include "tools/nri/link.h"
#include "tools/nri/plugin.h"

namespace xschedd::nri {

inline constexpr char kPluginName[] = "xschedd";

// Registers the plugin under `index` ("00" to "99", the order among plugins), and serves the engine's calls until the
// connection ends, which is always a failure. `on_ready` is called when the engine has accepted the plugin.
Error Serve(Link& link, const std::string& index, Plugin& plugin, const std::function<void()>& on_ready);

}  // namespace xschedd::nri
