#include "tools/xschedctl/labels.h"

#include <fmt/format.h>

#include <map>

namespace xschedd::ctl {

namespace {

std::map<std::string, std::string> Sorted(const LabelMap& labels) {
  return {labels.begin(), labels.end()};
}

}  // namespace

std::string LabelsText(const LabelMap& labels) {
  std::string text;
  for (const auto& [name, value] : Sorted(labels))
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text;
}

Json LabelsJson(const LabelMap& labels) {
  Json json = Json::object();
  for (const auto& [name, value] : Sorted(labels))
    json[name] = value;
  return json;
}

}  // namespace xschedd::ctl
