// The policy's settings as a table. A setting is a member here, its row in kSettings, and its use. Configuration,
// protocol, saved state, `config show`, `policy get` and `set`, completion and simulator iterate the table; `./dev
// settings` writes the documents from it. A change acts at once, on live clients. Thread rule: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/result.h"
#include "daemon/policy/policies.h"

namespace xschedd::policy {

// docs/explanation/policies.md says why the defaults are what they are.
struct Settings {
  Name name = Name::kPriority;
  std::uint32_t linger_us = 200;
  std::uint32_t guard_ms_per_s = 10;
  std::uint32_t window_us = 500;
  std::uint32_t top_window_us = 20'000;
  std::optional<std::uint32_t> max_concurrent;  // none: each device's default
  std::uint32_t turn_ms = 100;
  std::uint32_t tolerance_percent = 5;
  bool step_aside = true;
  std::uint32_t share_slack_us = 5'000;
  std::uint32_t laxity_margin_us = 5'000;
  std::uint32_t fair_quantum_ms = 20;
  bool time_slices = true;
  bool queue_priority = false;
  bool operator==(const Settings&) const = default;
};

struct Limits {
  std::uint32_t max;
  std::uint32_t min;
};

// A number, one that may be left to the device's vendor, or a lever: "off", or its row's other word.
using Member = std::variant<std::uint32_t Settings::*, std::optional<std::uint32_t> Settings::*, bool Settings::*>;

// A setting's owner is a policy, by its name, or one of these.
inline constexpr std::string_view kOfAll = "all";
inline constexpr std::string_view kOfDevice = "device";
inline constexpr std::string_view kOfAmd = "amd";

// Of a value without a number: one that is the vendor's, or a lever that the device may lack.
inline constexpr std::string_view kAuto = "auto";

struct SettingRow {
  std::string_view key;  // in file, protocol and saved state; its suffix is the unit
  Member member;
  std::uint32_t min;
  std::uint32_t max;
  std::string_view owner;
  std::string_view since;       // the first release that has it
  std::string_view help;        // one line, for the person who sets it
  std::string_view on = kAuto;  // a lever's word for its value 1

  constexpr Limits Range() const { return {max, min}; }
  constexpr bool IsLever() const { return std::holds_alternative<bool Settings::*>(member); }
  constexpr bool MayBeVendors() const {
    return std::holds_alternative<std::optional<std::uint32_t> Settings::*>(member);
  }
  // Its table in the configuration file.
  constexpr std::string_view Section() const { return owner == kOfDevice || owner == kOfAmd ? owner : "policy"; }
  // A lever's words, by value.
  constexpr std::array<std::string_view, 2> Words() const { return {"off", on}; }
};

// In the order in which people see them.
inline constexpr SettingRow kSettings[] = {
    {"linger_us", &Settings::linger_us, 0, 100'000, kOfAll, "0.1.0",
     "how long the others stay held after the most important client has become idle"},
    {"guard_ms_per_s", &Settings::guard_ms_per_s, 0, 500, kOfAll, "0.1.0",
     "how much of each second held clients run on a GPU, in turns, even while others are busy; 0: off, and a program "
     "that waits for a held client may wait for ever"},
    {"window_us", &Settings::window_us, 0, 1'000'000, kOfAll, "0.1.0",
     "GPU time that clients below the most important attached one may have in flight on a GPU; four times as much "
     "where all its clients run under NVIDIA's MPS; 0: no limit"},
    {"top_window_us", &Settings::top_window_us, 0, 1'000'000, kOfAll, "0.1.0",
     "the same for the most important one itself, beside others: the most that is still queued when another becomes "
     "the most important; 0: no limit"},
    {"max_concurrent", &Settings::max_concurrent, 0, 1024, kOfAll, "0.1.0",
     "how many clients that are below the most important one, or kept to shares, run on a GPU at a time, in turns; 0: "
     "no limit; auto: no limit on AMD and under NVIDIA's MPS, where processes run side by side, and elsewhere 1, or "
     "more while that does not fill the GPU"},
    {"turn_ms", &Settings::turn_ms, 1, 1000, kOfAll, "0.1.0",
     "length of such a turn; half of that where clients are kept to shares"},
    {"tolerance_percent", &Settings::tolerance_percent, 0, 100, kOfAll, "0.1.0",
     "by how many percent an important client may be slowed down by the others, compared with holding them; more if "
     "that would hold several (at most four count) for most of their time; 0: they are held whenever it is busy"},
    {"step_aside", &Settings::step_aside, 0, 1, kOfAll, "0.2.0",
     "auto: clients below others that are known to be slowed down by no more than tolerance_percent beside them are "
     "not tracked until that is tried again, so that their launches cost nothing extra, unless one of them has a "
     "claim; off: they are tracked all the time, so that their GPU time is known"},
    {"share_slack_us", &Settings::share_slack_us, 500, 1'000'000, "share", "0.1.0",
     "GPU time by which a client may be ahead of its share before it is held"},
    {"laxity_margin_us", &Settings::laxity_margin_us, 0, 1'000'000, "laxity", "0.1.0",
     "how long before its latest possible start work becomes urgent"},
    {"fair_quantum_ms", &Settings::fair_quantum_ms, 1, 60'000, "fair", "0.1.0",
     "GPU time after which a client drops to the second of four levels; four times as much on each further level"},
    {"time_slices", &Settings::time_slices, 0, 1, kOfDevice, "0.1.0",
     "auto: where a device gives processes time slices that each may set for itself (NVIDIA, without MPS), clients "
     "below the most important attached one get short ones and the others long ones, so that running work gives way "
     "inside a kernel; off: the driver's own"},
    {"queue_priority", &Settings::queue_priority, 0, 1, kOfAmd, "0.2.0",
     "on: hardware queues of clients above priority 0 get the high queue priority and those below it the low one, "
     "when a client's priority changes and only then; each change interrupts all processes on the GPU for a time that "
     "xschedctl acceptance --levers measures; off: as each program asks",
     "on"},
};

// The row of a member.
template <typename Type>
consteval const SettingRow& RowOf(Type Settings::*member) {
  // Not get_if: with UBSan, GCC rejects its test for null in a constant expression.
  for (const SettingRow& row : kSettings) {
    if (std::holds_alternative<Type Settings::*>(row.member) && std::get<Type Settings::*>(row.member) == member)
      return row;
  }
  throw "a member of Settings without a row";
}

// The sections of the configuration file that have rows.
inline constexpr std::string_view kSections[] = {"policy", kOfDevice, kOfAmd};

// Null: there is none.
const SettingRow* RowFrom(std::string_view key);

// A setting's value, of whatever type: a lever's is 0 or 1.
using Value = std::int64_t;
inline constexpr Value kByVendor = -1;  // kAuto

Value Get(const SettingRow& row, const Settings& settings);
// On error the setting stays as it is; the error names the key and what may be given.
Result<void> Set(const SettingRow& row, Value value, Settings& settings);
// "500", or the value's word if it has one.
std::string Text(const SettingRow& row, Value value);
// A lever's value; for another word, one that Set refuses.
Value ValueOfWord(const SettingRow& row, std::string_view word);

}  // namespace xschedd::policy
