// The daemon's configuration: text that is no TOML, or TOML that says what is not allowed.
// Holds: what is accepted is within the limits; what is not is told in one line.
#include "daemon/config/config.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xschedd;
  const auto config = ParseConfig({reinterpret_cast<const char*>(data), size}, "xschedd.toml");
  if (!config) {
    FUZZ_CHECK(fuzz::IsOneLine(config.error().Line(), size + 4096));
    return 0;
  }
  const auto within = [](std::uint32_t value, policy::Limits limits) {
    return value >= limits.min && value <= limits.max;
  };
  const policy::Settings& settings = config->policy;
  FUZZ_CHECK(config->lease_ms >= 1);
  FUZZ_CHECK(within(settings.linger_us, policy::kLingerLimits));
  FUZZ_CHECK(within(settings.guard_ms_per_s, policy::kGuardLimits));
  FUZZ_CHECK(within(settings.window_us, policy::kWindowLimits));
  FUZZ_CHECK(within(settings.top_window_us, policy::kWindowLimits));
  FUZZ_CHECK(within(settings.tolerance_percent, policy::kToleranceLimits));
  FUZZ_CHECK(within(settings.turn_ms, policy::kTurnLimits));
  FUZZ_CHECK(within(settings.share_slack_us, policy::kShareSlackLimits));
  FUZZ_CHECK(within(settings.fair_quantum_ms, policy::kFairQuantumLimits));
  for (const Rule& rule : config->rules) {
    FUZZ_CHECK(!rule.priority || IsPriority(*rule.priority));
    FUZZ_CHECK(!rule.weight || within(*rule.weight, policy::kWeightLimits));
  }
  for (const auto& [uid, ceiling] : config->ceilings)
    FUZZ_CHECK(IsPriority(config->PriorityCeiling(uid).value_or(0)) &&
               within(config->WeightCeiling(uid).value_or(1), policy::kWeightLimits));
  return 0;
}
