#include "tools/bench/simulate/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/parse_number.h"

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

Result<std::uint32_t> Number(std::string_view text) {
  if (const auto value = ParseNumber<std::uint32_t>(text)) return *value;
  return Fail(fmt::format("\"{}\" is not a number", text), "give a whole number without a unit");
}

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

Result<Assignment> ParseAssignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return Fail(fmt::format("\"{}\" has no =", text), "write it as window_us=500");
  Assignment assignment{text.substr(0, equals), {}};
  std::size_t begin = equals + 1;
  while (true) {
    const std::size_t comma = text.find(',', begin);
    const Result<std::uint32_t> value = Number(std::string_view(text).substr(begin, comma - begin));
    if (!value) return tl::unexpected(value.error());
    assignment.values.push_back(*value);
    if (comma == std::string::npos) return assignment;
    begin = comma + 1;
  }
}

Result<void> SetByText(Parameters& parameters, const std::string& text) {
  const Result<Assignment> assignment = ParseAssignment(text);
  if (!assignment) return tl::unexpected(assignment.error());
  if (assignment->values.size() != 1) return Fail("--set takes one value", "use --sweep for several");
  return Set(parameters, assignment->name, assignment->values[0]);
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
