#include "tools/bench/simulate/parameters.h"

#include <fmt/format.h>

namespace xschedd::simulate {
namespace {

struct Field {
  std::string_view name;
  std::uint32_t Parameters::*member;
};

constexpr std::uint32_t kMaxDelayUs = 1'000'000;

constexpr Field kFields[] = {
    {"wake_us", &Parameters::wake_us},
    {"decision_us", &Parameters::decision_us},
    {"poll_us", &Parameters::poll_us},
    {"report_us", &Parameters::report_us},
};

}  // namespace

Result<void> Set(Parameters& parameters, std::string_view name, std::uint32_t value) {
  if (const policy::SettingRow* row = policy::RowFrom(name)) return policy::Set(*row, value, parameters.settings);
  for (const Field& field : kFields) {
    if (field.name != name) continue;
    if (value > kMaxDelayUs) {
      return Fail(fmt::format("{} is {}", name, value), fmt::format("give it 0 to {}", kMaxDelayUs));
    }
    parameters.*field.member = value;
    return {};
  }
  return Fail(fmt::format("there is no setting \"{}\"", name), fmt::format("there are {}", fmt::join(Names(), ", ")));
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const policy::SettingRow& row : policy::kSettings)
    names.emplace_back(row.key);
  for (const Field& field : kFields)
    names.emplace_back(field.name);
  return names;
}

}  // namespace xschedd::simulate
