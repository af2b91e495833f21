// The daemon's configuration: text that is not TOML, or TOML with invalid values; in one file, or in two if a line
// "# ----" divides it. Properties: accepted values are within the limits; an error is one line.
#include "daemon/config/config.h"
#include "tests/fuzz/input.h"

constexpr std::string_view kDivider = "\n# ----\n";

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xschedd;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find(kDivider);
  std::vector<ConfigFile> files = {{"xschedd.toml", std::string(text.substr(0, end))}};
  if (end != std::string_view::npos)
    files.push_back({"conf.d/x.toml", std::string(text.substr(end + kDivider.size()))});
  const auto config = ParseConfig(files);
  if (!config) {
    FUZZ_CHECK(fuzz::IsOneLine(config.error().Line(), size + 4096));
    return 0;
  }
  const auto within = [](std::uint32_t value, policy::Limits limits) {
    return value >= limits.min && value <= limits.max;
  };
  FUZZ_CHECK(config->lease_ms >= 1);
  for (const policy::SettingRow& row : policy::kSettings) {
    policy::Settings same = config->policy;
    FUZZ_CHECK(policy::Set(row, policy::Get(row, config->policy), same).has_value());
  }
  for (const Rule& rule : config->rules) {
    FUZZ_CHECK(!rule.priority || IsPriority(*rule.priority));
    FUZZ_CHECK(!rule.weight || within(*rule.weight, policy::kWeightLimits));
  }
  for (const auto& [uid, ceiling] : config->ceilings)
    FUZZ_CHECK(IsPriority(config->PriorityCeiling(uid).value_or(0)) &&
               within(config->WeightCeiling(uid).value_or(1), policy::kWeightLimits));
  return 0;
}
