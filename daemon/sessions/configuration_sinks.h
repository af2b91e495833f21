// Whom a change of the configuration is sent to. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>

namespace xschedd {

class ConfigurationSink {
 public:
  virtual ~ConfigurationSink() = default;
  virtual void SendConfiguration() = 0;
};

// The sessions that have said hello, by client.
using ConfigurationSinks = std::map<std::uint64_t, ConfigurationSink*>;

}  // namespace xschedd
