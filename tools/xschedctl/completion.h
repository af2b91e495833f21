// Shell completion, made from the command line itself: what CLI11 knows of commands and options is walked, so that
// neither can be forgotten. Only what a value may be is told here, by the option's name. Thread rule: pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace xschedd::ctl {

// A script for bash 4 and later (bash-completion is used where it is there), and a function for zsh's fpath.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);

}  // namespace xschedd::ctl
