#include "tools/bench/simulate/parameters.h"

#include <fmt/format.h>

namespace xschedd::simulate {
namespace {

struct Field {
  std::string_view name;
  policy::Limits limits;
  void (*set)(Parameters&, std::uint32_t);
};

constexpr policy::Limits kDelayLimits{1'000'000, 0};

constexpr Field kFields[] = {
    {"linger_us", policy::kLingerLimits, [](Parameters& p, std::uint32_t v) { p.settings.linger_us = v; }},
    {"guard_ms_per_s", policy::kGuardLimits, [](Parameters& p, std::uint32_t v) { p.settings.guard_ms_per_s = v; }},
    {"window_us", policy::kWindowLimits, [](Parameters& p, std::uint32_t v) { p.settings.window_us = v; }},
    {"top_window_us", policy::kWindowLimits, [](Parameters& p, std::uint32_t v) { p.settings.top_window_us = v; }},
    {"max_concurrent", policy::kConcurrentLimits,
     [](Parameters& p, std::uint32_t v) { p.settings.max_concurrent = v; }},
    {"tolerance_percent", policy::kToleranceLimits,
     [](Parameters& p, std::uint32_t v) { p.settings.tolerance_percent = v; }},
    {"turn_ms", policy::kTurnLimits, [](Parameters& p, std::uint32_t v) { p.settings.turn_ms = v; }},
    {"share_slack_us", policy::kShareSlackLimits,
     [](Parameters& p, std::uint32_t v) { p.settings.share_slack_us = v; }},
    {"laxity_margin_us", policy::kLaxityMarginLimits,
     [](Parameters& p, std::uint32_t v) { p.settings.laxity_margin_us = v; }},
    {"fair_quantum_ms", policy::kFairQuantumLimits,
     [](Parameters& p, std::uint32_t v) { p.settings.fair_quantum_ms = v; }},
    {"time_slices", {1, 0}, [](Parameters& p, std::uint32_t v) { p.settings.time_slices = v != 0; }},
    {"wake_us", kDelayLimits, [](Parameters& p, std::uint32_t v) { p.wake_us = v; }},
    {"decision_us", kDelayLimits, [](Parameters& p, std::uint32_t v) { p.decision_us = v; }},
    {"poll_us", kDelayLimits, [](Parameters& p, std::uint32_t v) { p.poll_us = v; }},
    {"report_us", kDelayLimits, [](Parameters& p, std::uint32_t v) { p.report_us = v; }},
};

}  // namespace

Result<void> Set(Parameters& parameters, std::string_view name, std::uint32_t value) {
  for (const Field& field : kFields) {
    if (field.name != name) continue;
    if (value < field.limits.min || value > field.limits.max) {
      return Fail(fmt::format("{} is {}", name, value),
                  fmt::format("give it {} to {}", field.limits.min, field.limits.max));
    }
    field.set(parameters, value);
    return {};
  }
  return Fail(fmt::format("there is no setting \"{}\"", name), fmt::format("there are {}", fmt::join(Names(), ", ")));
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Field& field : kFields)
    names.emplace_back(field.name);
  return names;
}

}  // namespace xschedd::simulate
