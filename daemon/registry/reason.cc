#include "daemon/registry/reason.h"

namespace xschedd {

namespace {

std::string TextInForce(const Reason& reason) {
  const std::string who = "pid " + std::to_string(reason.pid) + " (priority " + std::to_string(reason.priority) + ")";
  switch (reason.why) {
    case policy::Why::kOpen:
      return "nobody more important is busy";
    case policy::Why::kGuard:
      return "the starvation guard gives it a turn";
    case policy::Why::kBeside:
      return who + " is busy, and holding this one would not help it";
    case policy::Why::kHold:
      return "on hold until xschedctl release";
    case policy::Why::kPriority:
      return who + " is busy";
    case policy::Why::kLinger:
      return who + " has just become idle";
    case policy::Why::kGang:
      return who + " is busy on another device of the group";
    case policy::Why::kTurn:
      return "it is the turn of " + who;
    case policy::Why::kShare:
      return "ahead of its share; " + who + " is behind";
    case policy::Why::kDeadline:
      return who + " runs first because of its deadline";
    case policy::Why::kFair:
      return who + " has had less of the device";
  }
  return "unknown";
}

}  // namespace

std::string Reason::Text() const {
  return (is_observed ? "observed only: " : "") + TextInForce(*this);
}

std::string_view RuleName(policy::Why why) {
  switch (why) {
    case policy::Why::kOpen:
      return "open";
    case policy::Why::kGuard:
      return "guard";
    case policy::Why::kBeside:
      return "beside";
    case policy::Why::kHold:
      return "hold";
    case policy::Why::kPriority:
      return "priority";
    case policy::Why::kLinger:
      return "linger";
    case policy::Why::kGang:
      return "gang";
    case policy::Why::kTurn:
      return "turn";
    case policy::Why::kShare:
      return "share";
    case policy::Why::kDeadline:
      return "deadline";
    case policy::Why::kFair:
      return "fair";
  }
  return "unknown";
}

}  // namespace xschedd
