// Shell completion, made from the command line itself, so that no command or option can be forgotten. Only the kind of
// a value is chosen by the option's name (completion_tree.cc). Thread rule: pure functions.
#pragma once

#include <string>

#include "common/command_syntax.h"

namespace xschedd::ctl {

// A script for bash 4 and later (bash-completion is used where it is there), and a function for zsh's fpath.
std::string BashCompletion(const CommandDescription& program);
std::string ZshCompletion(const CommandDescription& program);

}  // namespace xschedd::ctl
