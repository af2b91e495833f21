// `--duration 10s` of the commands that look back or record for a while. Thread rule: main thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/command_syntax.h"
#include "common/result.h"

namespace xschedd::ctl {

struct DurationOption {
  std::string duration;
  std::string seconds;  // the option's name in 0.1.0, --seconds N, still accepted

  // Whole seconds; `otherwise` if neither was given. A use of the old name prints a notice on standard error.
  Result<std::uint32_t> Seconds(std::uint32_t otherwise) const;
};

void AddDurationOption(CommandSyntax& command, DurationOption& option, const std::string& help);

}  // namespace xschedd::ctl
