#include "tools/xschedctl/top/terminal.h"

// Functions, not macros.
#define NCURSES_NOMACROS
#include <curses.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace xschedd::ctl {
namespace {

volatile std::sig_atomic_t quit_requested = 0;

enum Pair : short { kPairNone, kPairDevice, kPairHeld, kPairOnHold, kPairQuestion, kPairError };

attr_t AttributesOf(TopStyle style) {
  switch (style) {
    case TopStyle::kPlain:
      return A_NORMAL;
    case TopStyle::kTitle:
      return A_BOLD;
    case TopStyle::kDevice:
      return COLOR_PAIR(kPairDevice);
    case TopStyle::kHeader:
      return A_UNDERLINE;
    case TopStyle::kHeld:
      return COLOR_PAIR(kPairHeld);
    case TopStyle::kOnHold:
      return COLOR_PAIR(kPairOnHold) | A_BOLD;
    case TopStyle::kDim:
      return A_DIM;
    case TopStyle::kSelected:
      return A_REVERSE;
    case TopStyle::kQuestion:
      return COLOR_PAIR(kPairQuestion) | A_BOLD;
    case TopStyle::kError:
      return COLOR_PAIR(kPairError) | A_BOLD;
  }
  return A_NORMAL;
}

void UseColours() {
  const char* const no_color = std::getenv("NO_COLOR");
  if ((no_color != nullptr && *no_color != '\0') || !::has_colors()) return;
  ::start_color();
  ::use_default_colors();
  ::init_pair(kPairDevice, COLOR_CYAN, -1);
  ::init_pair(kPairHeld, COLOR_YELLOW, -1);
  ::init_pair(kPairOnHold, COLOR_MAGENTA, -1);
  ::init_pair(kPairQuestion, COLOR_GREEN, -1);
  ::init_pair(kPairError, COLOR_RED, -1);
}

}  // namespace

Result<Terminal> Terminal::Open() {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) {
    return Fail("top needs a terminal", "use --batch, or ps");
  }
  std::setlocale(LC_CTYPE, "");
  // newterm, because initscr exits the program if it does not know the terminal.
  SCREEN* const screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    const char* const term = std::getenv("TERM");
    return Fail("unknown terminal type: TERM=" + std::string(term == nullptr ? "" : term),
                "set TERM, for example to xterm, or use --batch");
  }
  ::set_term(screen);
  UseColours();
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::set_escdelay(50);
  ::curs_set(0);
  struct sigaction action {};
  action.sa_handler = [](int) { quit_requested = 1; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaction(signal, &action, nullptr);
  return Terminal();
}

Terminal::~Terminal() {
  if (is_open_) ::endwin();
}

bool Terminal::IsInterrupted() {
  return quit_requested != 0;
}

std::size_t Terminal::Width() const {
  return static_cast<std::size_t>(getmaxx(stdscr));
}
std::size_t Terminal::Height() const {
  return static_cast<std::size_t>(getmaxy(stdscr));
}

void Terminal::Show(const std::vector<TopLine>& lines) {
  ::werase(stdscr);
  for (std::size_t row = 0; row < lines.size(); ++row) {
    ::wattrset(stdscr, static_cast<int>(AttributesOf(lines[row].style)));
    ::mvwaddstr(stdscr, static_cast<int>(row), 0, lines[row].text.c_str());
  }
  ::wattrset(stdscr, static_cast<int>(A_NORMAL));
  ::wrefresh(stdscr);
}

TopKey Terminal::Read(std::chrono::milliseconds limit) {
  ::wtimeout(stdscr, static_cast<int>(limit.count()));
  const int code = ::wgetch(stdscr);
  switch (code) {
    case KEY_UP:
      return {TopKey::Kind::kUp};
    case KEY_DOWN:
      return {TopKey::Kind::kDown};
    case KEY_PPAGE:
      return {TopKey::Kind::kPageUp};
    case KEY_NPAGE:
      return {TopKey::Kind::kPageDown};
    case KEY_HOME:
      return {TopKey::Kind::kHome};
    case KEY_END:
      return {TopKey::Kind::kEnd};
    case KEY_ENTER:
    case '\r':
    case '\n':
      return {TopKey::Kind::kEnter};
    case KEY_BACKSPACE:
    case '\b':
    case 0x7f:
      return {TopKey::Kind::kBackspace};
    case 0x1b:
      return {TopKey::Kind::kEscape};
    default:
      break;
  }
  if (code >= 0x20 && code < 0x7f) return {TopKey::Kind::kChar, static_cast<char>(code)};
  return {};
}

}  // namespace xschedd::ctl
