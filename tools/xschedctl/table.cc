#include "tools/xschedctl/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace xschedd::ctl {
namespace {

constexpr std::size_t kGap = 2;
// A flexible column narrower than this is useless: drop another column instead.
constexpr std::size_t kFlexibleMin = 12;

bool StartsCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

std::string CutTo(const std::string& text, std::size_t width) {
  if (DisplayWidth(text) <= width) return text;
  return FirstCharacters(text, width - 1) + "+";
}

}  // namespace

void Table::Add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells)
    cell = OneLine(cell);
  rows_.push_back(std::move(cells));
  colours_.emplace_back(columns_.size(), Colour::kNone);
}

void Table::Paint(std::size_t column, Colour colour) {
  colours_.back()[column] = colour;
}

Table::Layout Table::Fit(const TextStyle& style) const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (style.header) widths[c] = DisplayWidth(columns_[c].header);
    for (const auto& row : rows_)
      widths[c] = std::max(widths[c], DisplayWidth(row[c]));
  }

  std::vector<bool> shown(columns_.size(), true);
  const auto total = [&](bool flexible_at_its_least) {
    std::size_t sum = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (!shown[c]) continue;
      const bool least = flexible_at_its_least && columns_[c].flexible;
      sum += (least ? std::min(widths[c], kFlexibleMin) : widths[c]) + (sum > 0 ? kGap : 0);
    }
    return sum;
  };
  const std::size_t width = style.width;
  while (width > 0 && total(true) > width) {
    std::size_t drop = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (shown[c] && columns_[c].rank > 0 && (drop == columns_.size() || columns_[c].rank > columns_[drop].rank))
        drop = c;
    }
    if (drop == columns_.size()) break;
    shown[drop] = false;
  }
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const std::size_t needed = total(false);
    if (width == 0 || !shown[c] || !columns_[c].flexible || needed <= width) continue;
    const std::size_t excess = needed - width;
    widths[c] = widths[c] > excess + kFlexibleMin ? widths[c] - excess : std::min(widths[c], kFlexibleMin);
  }
  return {std::move(widths), std::move(shown)};
}

bool Table::Shows(std::string_view header, const TextStyle& style) const {
  const Layout layout = Fit(style);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (columns_[c].header == header) return layout.shown[c];
  return false;
}

std::string Table::Render(const TextStyle& style) const {
  const Layout layout = Fit(style);
  std::string text;
  const auto line = [&](const auto& cell_of, const auto& colour_of) {
    std::string out;
    bool first = true;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (!layout.shown[c]) continue;
      if (!first) out.append(kGap, ' ');
      first = false;
      const std::string cell = CutTo(cell_of(c), layout.widths[c]);
      const std::size_t padding = layout.widths[c] - std::min(layout.widths[c], DisplayWidth(cell));
      if (columns_[c].right) out.append(padding, ' ');
      out += Painted(cell, colour_of(c), style.colour);
      if (!columns_[c].right) out.append(padding, ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  if (style.header) {
    line([&](std::size_t c) { return columns_[c].header; }, [](std::size_t) { return Colour::kBold; });
  }
  for (std::size_t r = 0; r < rows_.size(); ++r)
    line([&](std::size_t c) { return rows_[r][c]; }, [&](std::size_t c) { return colours_[r][c]; });
  return text;
}

std::size_t DisplayWidth(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), StartsCharacter));
}

std::string FirstCharacters(std::string_view text, std::size_t count) {
  std::size_t bytes = 0;
  while (bytes < text.size() && (count > 0 || !StartsCharacter(text[bytes]))) {
    if (StartsCharacter(text[bytes])) --count;
    ++bytes;
  }
  return std::string(text.substr(0, bytes));
}

std::vector<std::string> WrapWords(std::string_view text, std::size_t width, LongWords long_words) {
  width = std::max<std::size_t>(width, 1);
  std::vector<std::string> lines;
  while (DisplayWidth(text) > width) {
    const std::size_t blank = FirstCharacters(text, width + 1).rfind(' ');
    std::size_t end = blank;
    if (blank == std::string::npos || blank == 0)
      end = long_words == LongWords::kCut ? FirstCharacters(text, width).size()
                                          : std::min(text.find(' ', 1), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (!text.empty()) lines.emplace_back(text);
  return lines;
}

std::size_t TerminalWidth() {
  if (isatty(STDOUT_FILENO) == 0) return 0;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const long value = std::strtol(columns, nullptr, 10);
    if (value > 0) return static_cast<std::size_t>(value);
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 0;
}

}  // namespace xschedd::ctl
