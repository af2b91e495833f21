// Prints the table of settings and the registry of policies as JSON, for tools/settings/write.
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/xschedctl/policy_settings.h"

int main() {
  using namespace xschedd;
  using Json = nlohmann::ordered_json;
  const policy::Settings defaults;
  Json table = {{"policy", policy::Text(defaults.name)}, {"policies", Json::array()}, {"settings", Json::array()}};
  for (const policy::Name name : policy::Names()) {
    table["policies"].push_back({{"name", policy::Text(name)},
                                 {"promise", policy::PromiseOf(name)},
                                 {"not_promised", policy::NotPromisedBy(name)}});
  }
  for (const policy::SettingRow& row : policy::kSettings) {
    const policy::Value value = policy::Get(row, defaults);
    table["settings"].push_back({{"key", row.key},
                                 {"section", row.Section()},
                                 {"min", row.min},
                                 {"max", row.max},
                                 {"is_lever", row.IsLever()},
                                 {"on", row.on},
                                 {"may_be_vendors", row.MayBeVendors()},
                                 {"default", policy::Text(row, value)},
                                 {"since", row.since},
                                 {"policy", policy::NameFrom(row.owner) ? row.owner : ""},
                                 {"help", row.help},
                                 {"option", ctl::OptionOf(row)},
                                 {"placeholder", ctl::Placeholder(row)},
                                 {"shown", ctl::SettingText(row, value)}});
  }
  std::cout << table.dump(1) << "\n";
}
