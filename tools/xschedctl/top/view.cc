#include "tools/xschedctl/top/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/priority.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

constexpr int kStep = 5;  // of the keys + and -
constexpr std::size_t kBar = 10;
constexpr std::size_t kCommandInQuestion = 30;

constexpr std::string_view kHelp[] = {
    "Up Down PgUp PgDn Home End  choose a client (also k and j)",
    "< >      sort by the column to the left or right; r: the other way round",
    "/        show only what has a text in it somewhere; Esc: all again",
    "p        set the priority of the chosen client; + and -: by 5; asks first",
    "w        set its weight; asks first",
    "h        hold it, or release it; asks first",
    "Space    stop the picture, and go on",
    "?        this page",
    "q        quit",
    "",
    "GPU      GPU time used in the last second, of the time",
    "SHARE    its part of what all clients of the device used",
    "HELD     how much of the last seconds it had work and its gate was shut",
    "P99-HOLD 99 of 100 holds of the last minute were not longer",
    "LAUNCH/S launches in a second",
    "IN-FL    launches believed unfinished",
    "-        not known: untracked (nobody of another priority is there), or too new",
};

std::string Percent(const std::optional<double>& part) {
  return part ? fmt::format("{:.1f} %", *part * 100) : "-";
}

std::string PerSecond(const std::optional<double>& rate) {
  if (!rate) return "-";
  return *rate < 9'999.5 ? fmt::format("{:.0f}", *rate) : fmt::format("{:.1f}k", *rate / 1000);
}

// Into lines, between words where there are some: the remedy of an error stands at its end.
std::vector<std::string> Wrap(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t length = FirstCharacters(text.substr(begin), width).size();
    if (begin + length < text.size()) {
      const std::size_t blank = text.rfind(' ', begin + length);
      if (blank != std::string::npos && blank > begin) length = blank - begin;
    }
    lines.push_back(text.substr(begin, length));
    begin += length;
    if (begin < text.size() && text[begin] == ' ') ++begin;
  }
  return lines;
}

std::string DeviceText(const TopDevice& device) {
  const double used = std::clamp(device.gpu.value_or(0), 0.0, 1.0);
  const auto full = static_cast<std::size_t>(std::lround(used * static_cast<double>(kBar)));
  const std::string bar = device.gpu ? "[" + std::string(full, '#') + std::string(kBar - full, '.') + "] " : "";
  return fmt::format("{}  GPU {:>7} {} {} clients, {} busy, {} held  {}", device.address, Percent(device.gpu), bar,
                     device.clients, device.busy, device.held, device.name);
}

TopStyle StyleOf(const TopRow& row) {
  if (row.hold) return TopStyle::kOnHold;
  if (row.state == "held" || row.state == "passing" || row.state == "observed") return TopStyle::kHeld;
  return row.state == "running" ? TopStyle::kPlain : TopStyle::kDim;
}

// Headers are as wide as what usually stands below them, so that columns stay where they are from picture to picture.
// `mark`: the column by which the rows are sorted.
Table MakeTable(const std::vector<TopRow>& rows, TopSort sort, bool reverse) {
  const auto header = [&](const char* name, std::size_t width, bool right) {
    std::string text(name);
    if (text == Name(sort)) text += reverse ? "^" : "*";
    const std::string pad(width - std::min(width, text.size()), ' ');
    return right ? pad + text : text + pad;
  };
  const auto number = [&](const char* name, std::size_t width, int rank) {
    return Column{.header = header(name, width, true), .right = true, .rank = rank};
  };
  const auto word = [&](const char* name, std::size_t width, int rank) {
    return Column{.header = header(name, width, false), .rank = rank};
  };
  Table table({number("PID", 7, 0), number("UID", 5, 7), number("PRIO", 5, 0), number("WEIGHT", 6, 8),
               word("STATE", 9, 0), number("GPU", 7, 0), number("SHARE", 7, 3), number("HELD", 7, 0),
               number("P99-HOLD", 9, 1), number("LAUNCH/S", 9, 2), number("IN-FL", 6, 4), word("DEVICE", 12, 5),
               word("WAITS-FOR", 11, 6), word("GROUP", 8, 9),
               Column{.header = header("COMMAND", 8, false), .flexible = true}});
  for (const TopRow& row : rows) {
    table.Add({std::to_string(row.pid), std::to_string(row.uid), std::to_string(row.priority),
               std::to_string(row.weight), row.hold ? row.state + ", hold" : row.state, Percent(row.gpu),
               Percent(row.share), Percent(row.held), row.p99_hold_ns ? Duration(*row.p99_hold_ns) : "-",
               PerSecond(row.launches_s), std::to_string(row.in_flight), row.device.empty() ? "-" : row.device,
               row.waits_for.empty() ? "-" : row.waits_for, row.group, row.command});
  }
  return table;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string Whom(const TopRow& row) {
  return fmt::format("pid {} ({})", row.pid, Harmless(row.command.substr(0, kCommandInQuestion)));
}

}  // namespace

// ---- keys

TopAction TopView::Press(const TopKey& key, const std::vector<TopRow>& rows) {
  if (key.kind == TopKey::Kind::kNone) return {};
  message_.clear();
  switch (mode_) {
    case Mode::kList:
      return PressInList(key, rows);
    case Mode::kHelp:
      mode_ = Mode::kList;
      return {};
    case Mode::kFilter:
    case Mode::kPriority:
    case Mode::kWeight:
      return PressInInput(key);
    case Mode::kConfirm:
      mode_ = Mode::kList;
      if (key.kind == TopKey::Kind::kChar && (key.character == 'y' || key.character == 'Y')) return asked_;
      Tell("nothing was changed", false);
      return {};
  }
  return {};
}

TopAction TopView::PressInList(const TopKey& key, const std::vector<TopRow>& rows) {
  const auto page = static_cast<std::ptrdiff_t>(page_);
  const auto all = static_cast<std::ptrdiff_t>(rows.size());
  switch (key.kind) {
    case TopKey::Kind::kUp:
      Move(-1, rows);
      return {};
    case TopKey::Kind::kDown:
      Move(1, rows);
      return {};
    case TopKey::Kind::kPageUp:
      Move(-page, rows);
      return {};
    case TopKey::Kind::kPageDown:
      Move(page, rows);
      return {};
    case TopKey::Kind::kHome:
      Move(-all, rows);
      return {};
    case TopKey::Kind::kEnd:
      Move(all, rows);
      return {};
    case TopKey::Kind::kEscape:
      filter_.clear();
      return {};
    case TopKey::Kind::kChar:
      break;
    default:
      return {};
  }

  const auto first = std::begin(kTopSorts);
  const auto last = std::end(kTopSorts);
  const auto at = std::find(first, last, sort_);
  switch (key.character) {
    case 'q':
    case 'Q':
      return {TopAction::Kind::kQuit, 0, 0};
    case '?':
      mode_ = Mode::kHelp;
      return {};
    case 'j':
      Move(1, rows);
      return {};
    case 'k':
      Move(-1, rows);
      return {};
    case '<':
      sort_ = at == first ? *(last - 1) : *(at - 1);
      return {};
    case '>':
      sort_ = at + 1 == last ? *first : *(at + 1);
      return {};
    case 'r':
      reverse_ = !reverse_;
      return {};
    case ' ':
      paused_ = !paused_;
      return {};
    case '/':
      mode_ = Mode::kFilter;
      input_ = filter_;
      return {};
    default:
      break;
  }
  if (rows.empty()) return {};
  const TopRow& row = rows[SelectedIndex(rows)];
  switch (key.character) {
    case 'p':
      AskForNumber(Mode::kPriority, row);
      break;
    case 'w':
      AskForNumber(Mode::kWeight, row);
      break;
    case '+':
    case '-':
      Ask(TopAction::Kind::kSetPriority,
          std::clamp(row.priority + (key.character == '+' ? kStep : -kStep), kPriorityMin, kPriorityMax), row);
      break;
    case 'h':
      Ask(row.hold ? TopAction::Kind::kRelease : TopAction::Kind::kHold, 0, row);
      break;
    default:
      break;
  }
  return {};
}

TopAction TopView::PressInInput(const TopKey& key) {
  const auto edit = [&] {
    if (key.kind == TopKey::Kind::kBackspace && !input_.empty()) input_.pop_back();
    if (key.kind == TopKey::Kind::kChar) input_ += key.character;
    if (mode_ == Mode::kFilter) filter_ = input_;
  };
  if (key.kind == TopKey::Kind::kEscape) {
    if (mode_ == Mode::kFilter) filter_.clear();
    mode_ = Mode::kList;
  } else if (key.kind != TopKey::Kind::kEnter) {
    edit();
  } else if (mode_ == Mode::kFilter) {
    mode_ = Mode::kList;
  } else if (mode_ == Mode::kPriority) {
    mode_ = Mode::kList;
    if (const Result<int> priority = ParsePriority(input_)) {
      Ask(TopAction::Kind::kSetPriority, *priority, about_);
    } else {
      Tell(priority.error().Line(), true);
    }
  } else {
    mode_ = Mode::kList;
    if (const Result<std::uint32_t> weight = ParseWeight(input_)) {
      Ask(TopAction::Kind::kSetWeight, static_cast<int>(*weight), about_);
    } else {
      Tell(weight.error().Line(), true);
    }
  }
  return {};
}

void TopView::AskForNumber(Mode mode, const TopRow& row) {
  mode_ = mode;
  about_ = row;
  input_.clear();
}

void TopView::Ask(TopAction::Kind kind, int value, const TopRow& row) {
  mode_ = Mode::kConfirm;
  asked_ = {kind, row.pid, value};
  switch (kind) {
    case TopAction::Kind::kSetPriority:
      question_ = fmt::format("priority of {} from {} to {}?", Whom(row), row.priority, value);
      break;
    case TopAction::Kind::kSetWeight:
      question_ = fmt::format("weight of {} from {} to {}?", Whom(row), row.weight, value);
      break;
    case TopAction::Kind::kHold:
      question_ = fmt::format("hold {}? It stops until it is released.", Whom(row));
      break;
    case TopAction::Kind::kRelease:
      question_ = fmt::format("release {}?", Whom(row));
      break;
    default:
      mode_ = Mode::kList;
      break;
  }
  question_ += " (y/n)";
}

void TopView::Tell(std::string message, bool is_error) {
  message_ = std::move(message);
  message_is_error_ = is_error;
}

std::size_t TopView::SelectedIndex(const std::vector<TopRow>& rows) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].client_id == selected_client_ && rows[i].device == selected_device_) return i;
  }
  return rows.empty() ? 0 : std::min(selected_index_, rows.size() - 1);
}

void TopView::Move(std::ptrdiff_t by, const std::vector<TopRow>& rows) {
  if (rows.empty()) return;
  const auto last = static_cast<std::ptrdiff_t>(rows.size()) - 1;
  const auto at = static_cast<std::ptrdiff_t>(SelectedIndex(rows)) + by;
  selected_index_ = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last));
  selected_client_ = rows[selected_index_].client_id;
  selected_device_ = rows[selected_index_].device;
}

// ---- lines

std::vector<TopLine> TopView::ComposeHelp(std::size_t width, std::size_t height) const {
  std::vector<TopLine> lines{{"xschedctl top: keys and columns", TopStyle::kTitle}, {"", TopStyle::kPlain}};
  for (const std::string_view text : kHelp)
    lines.push_back({FirstCharacters(std::string(text), width), TopStyle::kPlain});
  lines.resize(std::max<std::size_t>(height, 1) - 1);
  lines.push_back({FirstCharacters("any key: back", width), TopStyle::kDim});
  return lines;
}

TopLine TopView::Footer() const {
  switch (mode_) {
    case Mode::kConfirm:
      return {question_, TopStyle::kQuestion};
    case Mode::kFilter:
      return {"show only: " + input_ + "_", TopStyle::kQuestion};
    case Mode::kPriority:
      return {fmt::format("priority of {}, now {}, -100 to 100: {}_", Whom(about_), about_.priority, input_),
              TopStyle::kQuestion};
    case Mode::kWeight:
      return {fmt::format("weight of {}, now {}, 1 to 10000: {}_", Whom(about_), about_.weight, input_),
              TopStyle::kQuestion};
    default:
      break;
  }
  if (!message_.empty()) return {message_, message_is_error_ ? TopStyle::kError : TopStyle::kQuestion};
  return {"? help  / filter  <> sort  p+- priority  w weight  h hold  Space pause  q quit", TopStyle::kDim};
}

std::vector<TopLine> TopView::Compose(const TopModel& model, const std::vector<TopRow>& rows, const TopStatus& status,
                                      std::size_t width, std::size_t height) {
  if (height == 0 || width == 0) return {};
  if (mode_ == Mode::kHelp) return ComposeHelp(width, height);

  std::vector<TopLine> lines;
  std::string title = fmt::format("xschedd  {}  policy {}  {} clients  every {:.1f} s", status.clock,
                                  model.IsEmpty() ? "-" : model.Policy(), model.Clients(), status.delay_s);
  if (!filter_.empty()) title += fmt::format("  only \"{}\"", filter_);
  if (model.ObservesOnly()) title += "  OBSERVES ONLY";
  if (paused_) title += "  PAUSED";
  lines.push_back({title, TopStyle::kTitle});
  for (const std::string& part : Wrap(status.error, width))
    lines.push_back({part, TopStyle::kError});
  for (const TopDevice& device : model.Devices())
    lines.push_back({Harmless(DeviceText(device)), TopStyle::kDevice});
  lines.push_back({"", TopStyle::kPlain});

  // All rows are made, so that a column has one width wherever the list stands.
  std::vector<std::string> table = Lines(MakeTable(rows, sort_, reverse_).Render({.width = width}));
  const std::string header = table.front();
  table.erase(table.begin());
  lines.push_back({header, TopStyle::kHeader});

  const std::size_t footer = 1;
  page_ = height > lines.size() + footer ? height - lines.size() - footer : 0;
  const std::size_t selected = SelectedIndex(rows);
  selected_index_ = selected;
  if (!rows.empty()) {
    selected_client_ = rows[selected].client_id;
    selected_device_ = rows[selected].device;
  }
  if (selected < first_) first_ = selected;
  if (page_ > 0 && selected >= first_ + page_) first_ = selected - page_ + 1;
  if (rows.size() < first_ + page_) first_ = rows.size() > page_ ? rows.size() - page_ : 0;
  for (std::size_t i = first_; i < rows.size() && i < first_ + page_; ++i) {
    std::string text = table[i];
    if (i == selected) text.append(width - std::min(width, DisplayWidth(text)), ' ');
    lines.push_back({text, i == selected ? TopStyle::kSelected : StyleOf(rows[i])});
  }
  if (rows.empty() && page_ > 0) {
    lines.push_back(
        {model.Clients() == 0 ? "no client is connected" : "nothing fits the filter; Esc shows all", TopStyle::kDim});
  }

  lines.resize(height - std::min(height, footer));
  lines.push_back(Footer());
  for (TopLine& line : lines)
    line.text = FirstCharacters(line.text, width);
  return lines;
}

}  // namespace xschedd::ctl
