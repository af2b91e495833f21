// The terminal of `xschedctl top`, by ncurses: the alternate screen, raw keys, colours unless NO_COLOR is set. The
// previous screen is restored when it ends, also after SIGINT or SIGTERM. Thread rule: main thread; one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "common/result.h"
#include "tools/xschedctl/top/view.h"

namespace xschedd::ctl {

class Terminal {
 public:
  // Fails if standard input or output is not a terminal, or its type ($TERM) is not known.
  static Result<Terminal> Open();
  ~Terminal();
  Terminal(Terminal&& other) noexcept : is_open_(other.is_open_) { other.is_open_ = false; }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  Terminal& operator=(Terminal&&) = delete;

  std::size_t Width() const;
  std::size_t Height() const;
  // Writes only what has changed.
  void Show(const std::vector<TopLine>& lines);
  // kNone: no key came in time, or the window's size has changed.
  TopKey Read(std::chrono::milliseconds limit);
  // Whether SIGINT, SIGTERM or SIGHUP came.
  static bool IsInterrupted();

 private:
  Terminal() : is_open_(true) {}

  bool is_open_;
};

}  // namespace xschedd::ctl
