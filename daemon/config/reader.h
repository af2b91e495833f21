// Typed access to a TOML document that remembers the first thing it did not understand, with its place.
// Every function goes on after an error, so that callers read straight down. Thread rule: one thread.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "daemon/policy/types.h"

namespace xschedd {

class ConfigReader {
 public:
  explicit ConfigReader(std::string file) : file_(std::move(file)) {}

  // `place` is how the message calls the table.
  void OnlyKeys(const toml::table& table, std::string_view place, std::initializer_list<std::string_view> keys);

  // Each returns whether the key is there and right, and leaves `value` alone otherwise.
  bool Number(const toml::table& table, std::string_view key, policy::Limits limits, std::uint32_t& value);
  bool Priority(const toml::table& table, std::string_view key, int& value);
  bool Flag(const toml::table& table, std::string_view key, bool& value);
  bool Text(const toml::table& table, std::string_view key, std::string& value);
  // `check` says of an element what is wrong with it, if anything is.
  using Check = std::function<std::optional<Error>(const std::string&)>;
  bool Texts(const toml::table& table, std::string_view key, std::vector<std::string>& value, const Check& check);

  // Null if it is not there.
  const toml::table* Table(const toml::table& root, std::string_view key);
  void EachTable(const toml::table& root, std::string_view key, const std::function<void(const toml::table&)>& action);

  void Refuse(const toml::node& node, const std::string& what, const std::string& remedy);
  const std::optional<Error>& FirstError() const { return error_; }

 private:
  std::optional<std::int64_t> Integer(const toml::table& table, std::string_view key, std::int64_t min,
                                      std::int64_t max);

  std::string file_;
  std::optional<Error> error_;
};

}  // namespace xschedd
