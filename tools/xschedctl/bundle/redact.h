// Takes out of an answer what tells of users' programs: command lines, executables, groups and cgroups, of which the
// same one has the same number everywhere; and values of the environment. Thread rule: one user at a time.
#pragma once

#include <map>
#include <string>

#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {

class Redactor {
 public:
  // `environment`: whose values are taken out of texts where they belong to xschedd, the loader or a GPU's runtime.
  explicit Redactor(const std::map<std::string, std::string>& environment);

  // Of `ps --json`. First of all: what is known from there is found in the others, too.
  void Clients(Json* ps);
  void Event(Json* event);
  // A line of the daemon's log.
  static std::string LogLine(const std::string& line);
  // What a unit says of itself: without values of its environment.
  static std::string UnitLine(const std::string& line);
  // A text of ours that may quote the environment.
  std::string Text(std::string text) const;

 private:
  std::string Number(const std::string& kind, const std::string& name);

  std::map<std::string, std::map<std::string, std::string>> numbers_;  // by kind and name
  std::map<std::string, std::string> environment_;
};

}  // namespace xschedd::ctl
