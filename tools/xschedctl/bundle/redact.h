// Removes from the daemon's answers what identifies users' programs: command lines; executables, groups and cgroups,
// each replaced by a number that is the same everywhere; and values of the environment. Thread rule: one user at a
// time.
#pragma once

#include <map>
#include <string>

#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {

class Redactor {
 public:
  // `environment`: values of variables of xschedd, the loader or a GPU runtime are removed from texts.
  explicit Redactor(const std::map<std::string, std::string>& environment);

  // The answer of `ps --json`. Call it first, so that executables keep the numbers that this list gives them.
  void Clients(Json* ps);
  void Event(Json* event);
  // A line of the daemon's log.
  static std::string LogLine(const std::string& line);
  // A line of `systemctl show`, without the values of the unit's environment.
  static std::string UnitLine(const std::string& line);
  // A text of xschedctl itself that may quote the environment.
  std::string Text(std::string text) const;

 private:
  std::string Number(const std::string& kind, const std::string& name);

  std::map<std::string, std::map<std::string, std::string>> numbers_;  // by kind and name
  std::map<std::string, std::string> environment_;
};

}  // namespace xschedd::ctl
