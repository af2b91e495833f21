// Typed access to a TOML document, for the daemon's configuration and for the files of its tools (nri.toml,
// slurm.toml). Collects mistakes with their places, and the place of each key. Every function continues after an error,
// so that callers read straight down. Thread rule: one thread.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "daemon/config/config.h"
#include "daemon/policy/types.h"

namespace xschedd {

// Fails with the first syntax error. `file` is its name in messages.
tl::expected<toml::table, ConfigError> ParseToml(std::string_view text, const std::string& file);

class ConfigReader {
 public:
  // A file could contain a megabyte of mistakes.
  static constexpr std::size_t kMaxErrors = 100;

  explicit ConfigReader(std::string file) : file_(std::move(file)) {}

  // `place`: the table's name in messages.
  void OnlyKeys(const toml::table& table, std::string_view place, const std::vector<std::string_view>& keys);

  // Each returns whether the key is present and valid, and leaves `value` alone otherwise. A time may also be a text
  // with a unit, "25ms".
  bool Number(const toml::table& table, std::string_view key, policy::Limits limits, std::uint32_t& value);
  bool Priority(const toml::table& table, std::string_view key, int& value);
  // A limit of device memory in bytes, from "24G".
  bool Memory(const toml::table& table, std::string_view key, std::uint64_t& value);
  bool Flag(const toml::table& table, std::string_view key, bool& value);
  bool Text(const toml::table& table, std::string_view key, std::string& value);
  // `check` returns what is wrong with an element; none: nothing.
  using Check = std::function<std::optional<Error>(const std::string&)>;
  bool Texts(const toml::table& table, std::string_view key, std::vector<std::string>& value, const Check& check);

  // Null: absent.
  const toml::table* Table(const toml::table& root, std::string_view key);
  void EachTable(const toml::table& root, std::string_view key, const std::function<void(const toml::table&)>& action);
  // Each [key.NAME]; `place` is that text, as messages have it.
  using NamedAction = std::function<void(const std::string& name, const toml::table& table, const std::string& place)>;
  void EachNamedTable(const toml::table& root, std::string_view key, const NamedAction& action);

  void Refuse(const toml::node& node, const std::string& what, const std::string& remedy);
  // In the order found, at most kMaxErrors; ErrorCount counts all.
  const std::vector<ConfigError>& Errors() const { return errors_; }
  std::size_t ErrorCount() const { return error_count_; }
  FilePlace PlaceOf(const toml::node& node) const { return {file_, node.source().begin.line}; }
  // For each key in a table that occurs once: "policy.linger_us", "passthrough".
  const std::map<std::string, FilePlace>& Places() const { return places_; }

 private:
  std::optional<std::int64_t> Integer(const toml::table& table, std::string_view key, std::int64_t min,
                                      std::int64_t max);
  bool IsInRange(const toml::node& node, std::string_view key, std::int64_t number, std::int64_t min, std::int64_t max);

  void Refuse(const toml::source_position& where, const std::string& what, const std::string& remedy);

  std::string file_;
  std::vector<ConfigError> errors_;
  std::size_t error_count_ = 0;
  std::map<std::string, FilePlace> places_;
};

}  // namespace xschedd
