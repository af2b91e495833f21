#include "daemon/config/key_units.h"

#include <algorithm>
#include <iterator>

#include "daemon/config/duration.h"

namespace xschedd {
namespace {

struct Unit {
  std::string_view end;  // how the key ends
  std::string_view text;
  ParseTime parse = nullptr;
};
constexpr Unit kUnits[] = {
    {"_ms_per_s", "ms/s", ParseMilliseconds}, {"_kib_per_s", "KiB/s"},          {"_per_s", "1/s"},
    {"_us", "us", ParseMicroseconds},         {"_ms", "ms", ParseMilliseconds}, {"_percent", "%"}};

const Unit* FindUnit(std::string_view key) {
  const auto* const unit =
      std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& one) { return key.ends_with(one.end); });
  return unit == std::end(kUnits) ? nullptr : unit;
}

}  // namespace

std::string_view UnitOf(std::string_view key) {
  if (const Unit* unit = FindUnit(key)) return unit->text;
  return key.find("_kib_") != std::string_view::npos ? "KiB" : "";
}

std::string_view WithoutUnit(std::string_view key) {
  if (const Unit* unit = FindUnit(key)) key.remove_suffix(unit->end.size());
  return key;
}

ParseTime ParseTimeOf(std::string_view key) {
  const Unit* const unit = FindUnit(key);
  return unit == nullptr ? nullptr : unit->parse;
}

}  // namespace xschedd
