// A table of text that fits the terminal: less important columns go first, then the flexible one is cut. Written to a
// pipe (width 0) nothing is dropped or cut, so that scripts see every column always. Control characters in text from
// clients (command lines) become '?', so that no process can move the administrator's cursor. Thread rule: one user at
// a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/one_line.h"
#include "tools/xschedctl/colour.h"

namespace xschedd::ctl {

struct TextStyle {
  std::size_t width = 0;  // of the terminal; 0: no limit
  bool header = true;
  bool colour = false;
};

struct Column {
  std::string header;
  bool right = false;     // align right, for numbers
  int rank = 0;           // 0: always there; otherwise the highest rank is dropped first
  bool flexible = false;  // may be cut to fit; at most one, the last
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // As many cells as columns.
  void Add(std::vector<std::string> cells);
  // A cell of the row that was added last.
  void Paint(std::size_t column, Colour colour);
  // Lines end in '\n' without blanks before it.
  std::string Render(const TextStyle& style) const;
  // Whether Render shows the column `header`: there may be no room for it.
  bool Shows(std::string_view header, const TextStyle& style) const;

 private:
  struct Layout {
    std::vector<std::size_t> widths;  // of each column
    std::vector<bool> shown;
  };
  Layout Fit(const TextStyle& style) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::vector<Colour>> colours_;  // as rows_
};

// Number of characters, counting a UTF-8 sequence as one.
std::size_t DisplayWidth(std::string_view text);

// The first `count` characters, none of them cut.
std::string FirstCharacters(std::string_view text, std::size_t count);

enum class LongWords { kCut, kKeep };
// Lines of at most `width` characters, broken between words. A word that is longer than a line is cut, or (kKeep) makes
// its line longer, so that a path can still be copied.
std::vector<std::string> WrapWords(std::string_view text, std::size_t width, LongWords long_words);

// Width of the terminal on standard output; 0: not a terminal. $COLUMNS takes precedence, for terminals that report a
// wrong width.
std::size_t TerminalWidth();

}  // namespace xschedd::ctl
