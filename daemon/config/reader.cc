#include "daemon/config/reader.h"

#include <algorithm>

#include "common/priority.h"

namespace xschedd {

void ConfigReader::Refuse(const toml::node& node, const std::string& what, const std::string& remedy) {
  if (error_) return;
  const toml::source_position& begin = node.source().begin;
  error_ = Error{file_ + ":" + std::to_string(begin.line) + ":" + std::to_string(begin.column) + ": " + what, remedy};
}

void ConfigReader::OnlyKeys(const toml::table& table, std::string_view place,
                            std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : table) {
    if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
    std::string known;
    for (const std::string_view one : keys)
      known += (known.empty() ? "" : ", ") + std::string(one);
    if (error_) return;
    // The key's own place, not its value's.
    const toml::source_position& begin = key.source().begin;
    error_ = Error{file_ + ":" + std::to_string(begin.line) + ":" + std::to_string(begin.column) + ": unknown key \"" +
                       std::string(key.str()) + "\" in " + std::string(place),
                   "known are " + known};
  }
}

std::optional<std::int64_t> ConfigReader::Integer(const toml::table& table, std::string_view key, std::int64_t min,
                                                  std::int64_t max) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return std::nullopt;
  const std::string range = std::to_string(min) + " to " + std::to_string(max);
  const auto* number = node->as_integer();
  if (number == nullptr) {
    Refuse(*node, "\"" + std::string(key) + "\" is not a whole number", "give a number from " + range);
    return std::nullopt;
  }
  if (number->get() < min || number->get() > max) {
    Refuse(*node, "\"" + std::string(key) + "\" = " + std::to_string(number->get()) + " is out of range",
           "give a number from " + range);
    return std::nullopt;
  }
  return number->get();
}

bool ConfigReader::Number(const toml::table& table, std::string_view key, policy::Limits limits, std::uint32_t& value) {
  const auto number = Integer(table, key, limits.min, limits.max);
  if (number) value = static_cast<std::uint32_t>(*number);
  return number.has_value();
}

bool ConfigReader::Priority(const toml::table& table, std::string_view key, int& value) {
  const auto number = Integer(table, key, kPriorityMin, kPriorityMax);
  if (number) value = static_cast<int>(*number);
  return number.has_value();
}

bool ConfigReader::Flag(const toml::table& table, std::string_view key, bool& value) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return false;
  const auto* flag = node->as_boolean();
  if (flag == nullptr) {
    Refuse(*node, "\"" + std::string(key) + "\" is neither true nor false", "write one of these, without quotes");
    return false;
  }
  value = flag->get();
  return true;
}

bool ConfigReader::Text(const toml::table& table, std::string_view key, std::string& value) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return false;
  const auto* text = node->as_string();
  if (text == nullptr || text->get().empty()) {
    Refuse(*node, "\"" + std::string(key) + "\" is not a text", "write it in quotes, not empty");
    return false;
  }
  value = text->get();
  return true;
}

bool ConfigReader::Texts(const toml::table& table, std::string_view key, std::vector<std::string>& value,
                         const Check& check) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return false;
  const toml::array* array = node->as_array();
  if (array == nullptr) {
    Refuse(*node, "\"" + std::string(key) + "\" is not a list", "write [\"first\", \"second\"]");
    return false;
  }
  std::vector<std::string> texts;
  for (const toml::node& element : *array) {
    const auto* text = element.as_string();
    if (text == nullptr || text->get().empty()) {
      Refuse(element, "\"" + std::string(key) + "\" has an element that is not a text", "write each in quotes");
      return false;
    }
    if (const std::optional<Error> wrong = check(text->get())) {
      Refuse(element, wrong->what, wrong->remedy);
      return false;
    }
    texts.push_back(text->get());
  }
  value = std::move(texts);
  return true;
}

const toml::table* ConfigReader::Table(const toml::table& root, std::string_view key) {
  const toml::node* node = root.get(key);
  if (node == nullptr) return nullptr;
  const toml::table* table = node->as_table();
  if (table == nullptr)
    Refuse(*node, "\"" + std::string(key) + "\" is not a table", "write [" + std::string(key) + "]");
  return table;
}

void ConfigReader::EachTable(const toml::table& root, std::string_view key,
                             const std::function<void(const toml::table&)>& action) {
  const toml::node* node = root.get(key);
  if (node == nullptr) return;
  const toml::array* array = node->as_array();
  const std::string remedy = "write [[" + std::string(key) + "]]";
  if (array == nullptr) return Refuse(*node, "\"" + std::string(key) + "\" is not a list of tables", remedy);
  for (const toml::node& element : *array) {
    const toml::table* table = element.as_table();
    if (table == nullptr)
      return Refuse(element, "\"" + std::string(key) + "\" has an element that is no table", remedy);
    action(*table);
  }
}

}  // namespace xschedd
