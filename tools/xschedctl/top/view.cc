#include "tools/xschedctl/top/view.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/priority.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/top/screen_text.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

constexpr int kStep = 5;  // of the keys + and -

TopStyle StyleOf(const TopRow& row) {
  if (row.hold) return TopStyle::kOnHold;
  if (row.state == "held" || row.state == "passing" || row.state == "observed") return TopStyle::kHeld;
  return row.state == "running" ? TopStyle::kPlain : TopStyle::kDim;
}

}  // namespace

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
      ShowMessage("nothing was changed", false);
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
      ShowMessage(priority.error().Line(), true);
    }
  } else {
    mode_ = Mode::kList;
    if (const Result<std::uint32_t> weight = ParseWeight(input_)) {
      Ask(TopAction::Kind::kSetWeight, static_cast<int>(*weight), about_);
    } else {
      ShowMessage(weight.error().Line(), true);
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
      question_ = fmt::format("priority of {} from {} to {}?", NameInQuestion(row), row.priority, value);
      break;
    case TopAction::Kind::kSetWeight:
      question_ = fmt::format("weight of {} from {} to {}?", NameInQuestion(row), row.weight, value);
      break;
    case TopAction::Kind::kHold:
      question_ = fmt::format("hold {}? It stops until it is released.", NameInQuestion(row));
      break;
    case TopAction::Kind::kRelease:
      question_ = fmt::format("release {}?", NameInQuestion(row));
      break;
    default:
      mode_ = Mode::kList;
      break;
  }
  question_ += " (y/n)";
}

void TopView::ShowMessage(std::string message, bool is_error) {
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
  for (const std::string_view text : TopHelp())
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
      return {fmt::format("priority of {}, now {}, -100 to 100: {}_", NameInQuestion(about_), about_.priority, input_),
              TopStyle::kQuestion};
    case Mode::kWeight:
      return {fmt::format("weight of {}, now {}, 1 to 10000: {}_", NameInQuestion(about_), about_.weight, input_),
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
  std::string title =
      fmt::format("xschedd  {}  policy {}  {}  every {:.1f} s", status.clock, model.IsEmpty() ? "-" : model.Policy(),
                  Count(model.Clients(), "client"), status.delay_s);
  if (!filter_.empty()) title += fmt::format("  only \"{}\"", filter_);
  if (model.ObservesOnly()) title += "  OBSERVES ONLY";
  if (paused_) title += "  PAUSED";
  lines.push_back({title, TopStyle::kTitle});
  for (const std::string& part : WrapWords(status.error, width, LongWords::kCut))
    lines.push_back({part, TopStyle::kError});
  for (const TopDevice& device : model.Devices())
    lines.push_back({OneLine(DeviceText(device)), TopStyle::kDevice});
  lines.push_back({"", TopStyle::kPlain});

  // Of all rows, so that a column keeps its width while the list is scrolled.
  std::vector<std::string> table = TableLines(rows, sort_, reverse_, width);
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
    lines.push_back({model.Clients() == 0 ? "no client is connected" : "nothing matches the filter; Esc shows all",
                     TopStyle::kDim});
  }

  lines.resize(height - std::min(height, footer));
  lines.push_back(Footer());
  for (TopLine& line : lines)
    line.text = FirstCharacters(line.text, width);
  return lines;
}

}  // namespace xschedd::ctl
