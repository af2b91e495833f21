// The screen of `xschedctl top`, without a terminal: what a key does to it, and which lines it consists of. Nothing is
// changed unless a question was answered with "y". No I/O. Thread rule: one user at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/xschedctl/top/model.h"

namespace xschedd::ctl {

struct TopKey {
  enum class Kind { kNone, kChar, kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kEnter, kEscape, kBackspace };
  Kind kind = Kind::kNone;
  char character = 0;  // of kChar: printable ASCII
};

// A request to the daemon.
struct TopAction {
  enum class Kind { kNone, kQuit, kSetPriority, kSetWeight, kHold, kRelease };
  Kind kind = Kind::kNone;
  std::uint64_t pid = 0;
  int value = 0;
};

enum class TopStyle { kPlain, kTitle, kDevice, kHeader, kHeld, kOnHold, kDim, kSelected, kQuestion, kError };

struct TopLine {
  std::string text;
  TopStyle style = TopStyle::kPlain;
};

// What the screen shows in addition to the model.
struct TopStatus {
  std::string clock;  // "14:03:22"
  std::string error;  // why there is nothing new; empty: there is
  double delay_s = 1;
};

class TopView {
 public:
  explicit TopView(TopSort sort) : sort_(sort) {}

  // `rows`: as Compose had them.
  TopAction Press(const TopKey& key, const std::vector<TopRow>& rows);
  // Shows the outcome of an action until the next key.
  void ShowMessage(std::string message, bool is_error);
  bool IsPaused() const { return paused_; }

  std::vector<TopRow> RowsOf(const TopModel& model) const { return model.Rows(sort_, reverse_, filter_); }
  // Exactly `height` lines of at most `width` columns; fewer where there is no room at all.
  std::vector<TopLine> Compose(const TopModel& model, const std::vector<TopRow>& rows, const TopStatus& status,
                               std::size_t width, std::size_t height);

 private:
  enum class Mode { kList, kHelp, kFilter, kPriority, kWeight, kConfirm };

  TopAction PressInList(const TopKey& key, const std::vector<TopRow>& rows);
  TopAction PressInInput(const TopKey& key);
  void Move(std::ptrdiff_t by, const std::vector<TopRow>& rows);
  // Asks for the action about the selected client.
  void Ask(TopAction::Kind kind, int value, const TopRow& row);
  void AskForNumber(Mode mode, const TopRow& row);
  std::size_t SelectedIndex(const std::vector<TopRow>& rows) const;
  std::vector<TopLine> ComposeHelp(std::size_t width, std::size_t height) const;
  TopLine Footer() const;

  TopSort sort_;
  bool reverse_ = false;
  bool paused_ = false;
  std::string filter_;
  Mode mode_ = Mode::kList;
  std::string input_;
  std::string question_;
  TopRow about_;     // the row that a question is about
  TopAction asked_;  // what "y" does
  std::string message_;
  bool message_is_error_ = false;
  // The selected row, by its identity, not its position.
  std::uint64_t selected_client_ = 0;
  std::string selected_device_;
  std::size_t selected_index_ = 0;  // its last position, for when it has gone
  std::size_t first_ = 0;           // the first row that is shown
  std::size_t page_ = 1;            // rows that are shown
};

}  // namespace xschedd::ctl
