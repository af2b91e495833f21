// Every exit status of xschedctl with its text. --help, the manual page and docs/reference/xschedctl.md have the same;
// tests compare them. Thread rule: constants.
#pragma once

#include <span>
#include <string_view>

#include "tools/xschedctl/exit_code.h"

namespace xschedd::ctl {

struct ExitCodeText {
  ExitCode code;
  std::string_view text;
};
std::span<const ExitCodeText> ExitCodes();

}  // namespace xschedd::ctl
