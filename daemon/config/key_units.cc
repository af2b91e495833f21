#include "daemon/config/key_units.h"

#include <algorithm>
#include <iterator>

#include "daemon/config/duration.h"

namespace xschedd {
namespace {

struct KeyUnit {
  std::string_view end;  // how the key ends
  std::string_view text;
  ParseTime parse = nullptr;
};
constexpr KeyUnit kKeyUnits[] = {
    {"_ms_per_s", "ms/s", ParseMilliseconds}, {"_kib_per_s", "KiB/s"},          {"_per_s", "1/s"},
    {"_us", "us", ParseMicroseconds},         {"_ms", "ms", ParseMilliseconds}, {"_percent", "%"}};

const KeyUnit* FindUnit(std::string_view key) {
  const auto* const unit = std::find_if(std::begin(kKeyUnits), std::end(kKeyUnits),
                                        [&](const KeyUnit& one) { return key.ends_with(one.end); });
  return unit == std::end(kKeyUnits) ? nullptr : unit;
}

}  // namespace

std::string_view UnitOf(std::string_view key) {
  if (const KeyUnit* unit = FindUnit(key)) return unit->text;
  return key.find("_kib_") != std::string_view::npos ? "KiB" : "";
}

std::string_view WithoutUnit(std::string_view key) {
  if (const KeyUnit* unit = FindUnit(key)) key.remove_suffix(unit->end.size());
  return key;
}

ParseTime ParseTimeOf(std::string_view key) {
  const KeyUnit* const unit = FindUnit(key);
  return unit == nullptr ? nullptr : unit->parse;
}

}  // namespace xschedd
