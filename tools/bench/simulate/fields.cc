#include "tools/bench/simulate/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace xschedd::simulate {

Fields::Fields(const nlohmann::json& object, std::string_view what) : object_(object), what_(what) {
  if (!object.is_object()) throw FormatError(fmt::format("{} must be an object", what));
}

double Fields::Number(const std::string& key, double missing, double least, double most) {
  const nlohmann::json* value = Take(key);
  if (value == nullptr) return missing;
  if (!value->is_number()) throw FormatError(fmt::format("{}: \"{}\" must be a number", what_, key));
  const double number = value->get<double>();
  if (!(number >= least && number <= most)) {
    throw FormatError(fmt::format("{}: \"{}\" is {}, which is not from {} to {}", what_, key, number, least, most));
  }
  return number;
}

double Fields::Required(const std::string& key, double least, double most) {
  if (!object_.contains(key)) throw FormatError(fmt::format("{} needs \"{}\"", what_, key));
  return Number(key, 0, least, most);
}

std::string Fields::Text(const std::string& key, const std::string& missing) {
  const nlohmann::json* value = Take(key);
  if (value == nullptr) return missing;
  if (!value->is_string()) throw FormatError(fmt::format("{}: \"{}\" must be a string", what_, key));
  return value->get<std::string>();
}

bool Fields::Flag(const std::string& key) {
  const nlohmann::json* value = Take(key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) throw FormatError(fmt::format("{}: \"{}\" must be true or false", what_, key));
  return value->get<bool>();
}

const nlohmann::json* Fields::Take(const std::string& key) {
  taken_.push_back(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

void Fields::RejectUnknown() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(taken_.begin(), taken_.end(), key) == taken_.end()) {
      throw FormatError(fmt::format("{} has no \"{}\"; it has {}", what_, key, fmt::join(taken_, ", ")));
    }
  }
}

}  // namespace xschedd::simulate
