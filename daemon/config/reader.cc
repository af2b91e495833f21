#include "daemon/config/reader.h"

#include <algorithm>

#include "common/memory_limit.h"
#include "common/one_line.h"
#include "common/priority.h"
#include "daemon/config/key_units.h"

namespace xschedd {

tl::expected<toml::table, ConfigError> ParseToml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    const toml::source_position where = error.source().begin;
    return tl::unexpected<ConfigError>(
        {file, where.line, where.column, OneLine(error.description()), "correct the TOML syntax there"});
  }
}

void ConfigReader::Refuse(const toml::source_position& where, const std::string& what, const std::string& remedy) {
  if (++error_count_ > kMaxErrors) return;
  errors_.push_back({file_, where.line, where.column, OneLine(what), OneLine(remedy)});
}

void ConfigReader::Refuse(const toml::node& node, const std::string& what, const std::string& remedy) {
  Refuse(node.source().begin, what, remedy);
}

void ConfigReader::OnlyKeys(const toml::table& table, std::string_view place,
                            const std::vector<std::string_view>& keys) {
  const bool is_once = place.substr(0, 2) != "[[";
  const std::string prefix =
      is_once && place[0] == '[' ? std::string(place.substr(1, place.size() - 2)) + "." : std::string();
  for (const auto& [key, value] : table) {
    if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) {
      if (is_once) places_.emplace(prefix + std::string(key.str()), FilePlace{file_, key.source().begin.line});
      continue;
    }
    std::string known;
    for (const std::string_view one : keys)
      known += (known.empty() ? "" : ", ") + std::string(one);
    // The place of the key, not of its value.
    Refuse(key.source().begin, "unknown key \"" + std::string(key.str()) + "\" in " + std::string(place),
           "known are " + known);
  }
}

std::optional<std::int64_t> ConfigReader::Integer(const toml::table& table, std::string_view key, std::int64_t min,
                                                  std::int64_t max) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return std::nullopt;
  const auto* number = node->as_integer();
  if (number == nullptr) {
    Refuse(*node, "\"" + std::string(key) + "\" is not a whole number",
           "give a number from " + std::to_string(min) + " to " + std::to_string(max));
    return std::nullopt;
  }
  return IsInRange(*node, key, number->get(), min, max) ? std::optional(number->get()) : std::nullopt;
}

bool ConfigReader::IsInRange(const toml::node& node, std::string_view key, std::int64_t number, std::int64_t min,
                             std::int64_t max) {
  if (number >= min && number <= max) return true;
  Refuse(node, "\"" + std::string(key) + "\" = " + std::to_string(number) + " is out of range",
         "give a number from " + std::to_string(min) + " to " + std::to_string(max));
  return false;
}

bool ConfigReader::Number(const toml::table& table, std::string_view key, policy::Limits limits, std::uint32_t& value) {
  const toml::node* const node = table.get(key);
  const ParseTime parse = ParseTimeOf(key);
  if (node != nullptr && node->is_string() && parse != nullptr) {
    const Result<std::uint32_t> time = parse(node->as_string()->get());
    if (!time) Refuse(*node, "\"" + std::string(key) + "\": " + time.error().what, time.error().remedy);
    if (!time || !IsInRange(*node, key, *time, limits.min, limits.max)) return false;
    value = *time;
    return true;
  }
  const auto number = Integer(table, key, limits.min, limits.max);
  if (number) value = static_cast<std::uint32_t>(*number);
  return number.has_value();
}

bool ConfigReader::Priority(const toml::table& table, std::string_view key, int& value) {
  const auto number = Integer(table, key, kPriorityMin, kPriorityMax);
  if (number) value = static_cast<int>(*number);
  return number.has_value();
}

bool ConfigReader::Memory(const toml::table& table, std::string_view key, std::uint64_t& value) {
  std::string text;
  if (!Text(table, key, text)) return false;
  const Result<std::uint64_t> limit = ParseMemoryLimit(text);
  if (limit) {
    value = *limit;
  } else {
    Refuse(*table.get(key), limit.error().what, limit.error().remedy);
  }
  return limit.has_value();
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
  const std::size_t errors = error_count_;
  std::vector<std::string> texts;
  for (const toml::node& element : *array) {
    const auto* text = element.as_string();
    if (text == nullptr || text->get().empty()) {
      Refuse(element, "\"" + std::string(key) + "\" has an element that is not a text", "write each in quotes");
      continue;
    }
    if (const std::optional<Error> wrong = check(text->get())) Refuse(element, wrong->what, wrong->remedy);
    texts.push_back(text->get());
  }
  if (error_count_ != errors) return false;
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
    if (table != nullptr) {
      action(*table);
    } else {
      Refuse(element, "\"" + std::string(key) + "\" has an element that is not a table", remedy);
    }
  }
}

void ConfigReader::EachNamedTable(const toml::table& root, std::string_view key, const NamedAction& action) {
  const toml::table* const tables = Table(root, key);
  if (tables == nullptr) return;
  for (const auto& [name, node] : *tables) {
    const std::string place = OneLine("[" + std::string(key) + "." + std::string(name.str()) + "]");
    if (const toml::table* const table = node.as_table()) {
      action(std::string(name.str()), *table, place);
    } else {
      Refuse(node, place + " is not a table", "write " + place + " and its keys below it");
    }
  }
}

}  // namespace xschedd
