// What a policy sees and what it answers: plain values, no clock, no I/O, no pointers into the daemon.
//
// A State describes some devices, all groups that use them and all other devices of those groups, so that a group is
// always seen whole. History that a decision needs (since when a group waits, whose turn it is) is in Group::memory;
// the Decision returns the memory for the next State. The same State and time always give the same Decision. Thread
// rule: values; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace xschedd::policy {

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t kNsPerUs = 1'000;
inline constexpr std::uint64_t kNsPerMs = 1'000'000;
inline constexpr std::uint64_t kNsPerS = 1'000'000'000;

enum class Name { kPriority, kFifo };
inline constexpr std::string_view kNames[] = {"priority", "fifo"};  // indexed by Name
std::optional<Name> NameFrom(std::string_view text);
std::string_view Text(Name name);

// docs/policies.md says why the defaults are what they are.
struct Settings {
  Name name = Name::kPriority;
  std::uint32_t linger_us = 200;
  std::uint32_t guard_ms_per_s = 10;            // 0: off
  std::uint32_t window_us = 500;                // 0: no limit
  std::uint32_t top_window_us = 20'000;         // 0: no limit
  std::optional<std::uint32_t> max_concurrent;  // 0: no limit; not given: each device's default
  std::uint32_t turn_ms = 25;
  bool operator==(const Settings&) const = default;
};

struct Limits {
  std::uint32_t max;
  std::uint32_t min;
};
inline constexpr Limits kLingerLimits{100'000, 0};
inline constexpr Limits kGuardLimits{500, 0};
inline constexpr Limits kWindowLimits{1'000'000, 0};
inline constexpr Limits kConcurrentLimits{1024, 0};
inline constexpr Limits kTurnLimits{1000, 1};

struct Device {
  std::uint32_t default_max_concurrent = 0;  // background groups open at a time; 0: no limit
};

struct GroupMemory {
  std::uint64_t turn_since_ns = 0;     // 0: it is not its turn (turns.h)
  std::uint64_t last_turn_ns = 0;      // when its last turn ended
  std::uint64_t open_since_ns = 0;     // busy and open since; 0: it is not (guard.h)
  std::uint64_t starved_since_ns = 0;  // busy and held since, but for openings too short to count; 0: it is not
  std::uint64_t guard_until_ns = 0;    // the guard keeps it open until; 0: it does not
  bool operator==(const GroupMemory&) const = default;
};

struct Group {
  std::uint64_t id = 0;  // grows with arrival
  int priority = 0;      // effective; the highest of its clients
  bool hold = false;     // by an administrator: one held client holds its group
  GroupMemory memory;
};

// One client on one device.
struct Tenant {
  std::uint64_t client = 0;
  std::uint32_t group = 0;   // index into State::groups
  std::uint32_t device = 0;  // index into State::devices
  bool busy = false;
  std::uint64_t idle_since_ns = 0;  // when it last stopped being busy; 0: it never was
};

struct State {
  Settings settings;
  std::vector<Device> devices;
  std::vector<Group> groups;
  std::vector<Tenant> tenants;
};

enum class Why {
  kOpen,      // nothing stands against it
  kGuard,     // open although somebody more important is busy: the starvation guard's turn
  kHold,      // held by an administrator
  kPriority,  // held for a busy client of higher priority on this device
  kLinger,    // held for one that has just become idle
  kGang,      // held for one on another device that its group needs
  kTurn,      // held while it is another background group's turn
};

struct Gate {
  bool held = false;
  bool tracked = false;
  std::uint32_t window_us = 0;
  std::uint32_t window_floor = 0;
  Why why = Why::kOpen;
  std::uint64_t held_for = 0;  // client id; 0: nobody in particular
  bool operator==(const Gate&) const = default;
};

struct Decision {
  std::vector<Gate> gates;          // one for each State::tenants, in that order
  std::vector<GroupMemory> memory;  // one for each State::groups, in that order
  std::uint64_t next_look_ns = kNever;
};

}  // namespace xschedd::policy
