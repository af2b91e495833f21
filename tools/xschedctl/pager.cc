#include "tools/xschedctl/pager.h"

#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace xschedd::ctl {
namespace {

// Lines of the terminal on standard output; 0: not a terminal.
std::size_t TerminalHeight() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_row;
}

std::string PagerCommand() {
  // With elevated rights the caller's environment must not choose the program.
  for (const char* name : {"XSCHEDCTL_PAGER", "PAGER"}) {
    if (const char* const value = ::secure_getenv(name)) return std::string(value) == "cat" ? "" : value;
  }
  return "less";
}

}  // namespace

void Page(const std::string& text, const GlobalOptions& global) {
  const std::size_t height = TerminalHeight();
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  const std::string command = PagerCommand();
  if (global.no_pager || height == 0 || lines < height || command.empty()) return Print(text);
  // As systemctl sets it: quit if it fits one screen, pass colours, cut long lines, leave the screen as it is. No shell
  // or editor from within the pager, because this may run under sudo.
  ::setenv("LESS", "FRSXMK", 0);
  ::setenv("LESSSECURE", "1", 1);
  std::fflush(stdout);
  // Quitting the pager early is not an error, and an interrupt is for the pager.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGINT, SIG_IGN);
  FILE* const pager = ::popen(("exec " + command).c_str(), "we");
  if (pager == nullptr) return Print(text);
  std::fwrite(text.data(), 1, text.size(), pager);
  const int status = ::pclose(pager);
  constexpr int kNotFound = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound) Print(text);
}

}  // namespace xschedd::ctl
