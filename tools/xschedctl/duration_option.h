// `--duration 10s` of the commands that look back or record for a while. Thread rule: main thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/command_syntax.h"
#include "common/result.h"

namespace xschedd::ctl {

struct DurationOption {
  std::string duration;
  std::string seconds;  // by its name in 0.1.0, --seconds N, which is still understood

  // Whole seconds; `otherwise` where neither was given. Says on standard error what the old name's new one is.
  Result<std::uint32_t> Seconds(std::uint32_t otherwise) const;
};

void AddDurationOption(CommandSyntax& command, DurationOption& option, const std::string& help);

}  // namespace xschedd::ctl
