#include "tools/xschedctl/duration_option.h"

#include <fmt/format.h>

#include <cstdio>
#include <limits>

#include "daemon/config/duration.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {

void AddDurationOption(CommandSyntax& command, DurationOption& option, const std::string& help) {
  command.AddOption("--duration", option.duration, help, {.placeholder = "T"});
  command.AddOption("--seconds", option.seconds, "", {.is_hidden = true});
}

Result<std::uint32_t> DurationOption::Seconds(std::uint32_t otherwise) const {
  if (!duration.empty() && !seconds.empty()) {
    return Fail("--seconds is the old name of --duration", "give --duration alone");
  }
  if (!duration.empty()) return ParseSeconds(duration);
  if (seconds.empty()) return otherwise;
  const auto number = ParseNumber(seconds, "number of seconds", std::numeric_limits<std::uint32_t>::max());
  if (!number) return tl::unexpected<Error>(number.error());
  fmt::print(stderr, "xschedctl: --seconds is the old name of --duration; write --duration {}s\n", *number);
  return static_cast<std::uint32_t>(*number);
}

}  // namespace xschedd::ctl
