// All findings of the doctor, as text and as JSON. Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/xschedctl/doctor/checks.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {

struct Report {
  struct Entry {
    std::string check;
    Finding finding;
  };
  std::vector<Entry> entries;  // in the order of the checks

  bool HasError() const;
};

Report Examine(const Facts& facts);
// A line for each finding: its level, the check, what was found, what to do.
std::string Render(const Report& report, const TextStyle& style);
Json ToJson(const Report& report);

}  // namespace xschedd::ctl
