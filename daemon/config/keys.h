// One row for each configuration key that occurs once and holds one value, except the policy's (policy/settings.h).
// Both the reader and `config show` use the rows. Thread rule: constants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "daemon/config/config.h"

namespace xschedd {

// Points to a value.
using Place = std::variant<std::uint32_t*, bool*, std::string*>;

struct KeyRow {
  std::string_view section;
  std::string_view key;
  Place (*place)(Config&);
  std::uint32_t min = 0;  // for numbers
  std::uint32_t max = 0;
};

template <auto member>
Place In(Config& config) {
  return &(config.*member);
}
template <auto part, auto member>
Place In(Config& config) {
  return &(config.*part.*member);
}
template <auto member>
constexpr KeyRow QuotaRow(std::string_view key, std::uint32_t max = 1'000'000) {
  return {"quota", key, In<&Config::quota, member>, 1, max};
}

// In the order of `config show`.
inline constexpr KeyRow kKeys[] = {
    {"daemon", "lease_ms", In<&Config::lease_ms>, 20, 10'000},
    {"daemon", "activity_interval_ms", In<&Config::activity_interval_ms>, 0, 3'600'000},
    {"daemon", "spin", In<&Config::spin>},
    {"daemon", "enforce", In<&Config::enforce>},
    {"daemon", "software_gpu", In<&Config::software_gpu>},
    QuotaRow<&Quota::connections_per_uid>("connections_per_uid"),
    QuotaRow<&Quota::clients_per_uid>("clients_per_uid"),
    QuotaRow<&Quota::queues_per_client>("queues_per_client"),
    QuotaRow<&Quota::queues_per_uid>("queues_per_uid"),
    QuotaRow<&Quota::devices_per_uid>("devices_per_uid"),
    QuotaRow<&Quota::gpus_per_uid>("gpus_per_uid"),
    QuotaRow<&Quota::memory_kib_per_uid>("memory_kib_per_uid"),
    QuotaRow<&Quota::watchers_per_uid>("watchers_per_uid"),
    QuotaRow<&Quota::connects_per_s>("connects_per_s"),
    QuotaRow<&Quota::messages_per_s>("messages_per_s"),
    QuotaRow<&Quota::message_kib_per_s>("message_kib_per_s"),
    QuotaRow<&Quota::calls_per_s>("calls_per_s"),
    QuotaRow<&Quota::root_times>("root_times", 1'000),
    {"access", "readers", In<&Config::readers>},
    {"metrics", "enabled", In<&Config::metrics, &MetricsSettings::enabled>},
    {"metrics", "address", In<&Config::metrics, &MetricsSettings::address>},
};

}  // namespace xschedd
