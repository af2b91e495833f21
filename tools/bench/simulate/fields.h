// Reads the keys of a JSON object and remembers them, so that unknown keys are errors: a misspelt key must not mean the
// default. Thread rule: belongs to one thread.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd::simulate {

// Thrown with one line, which names the field; who reads the file adds the place.
struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Fields {
 public:
  // `object` must outlive this; `what` says in errors what it is, such as "a client".
  Fields(const nlohmann::json& object, std::string_view what);

  double Number(const std::string& key, double missing, double least, double most);
  double Required(const std::string& key, double least, double most);
  std::string Text(const std::string& key, const std::string& missing);
  bool Flag(const std::string& key);
  const nlohmann::json* Take(const std::string& key);
  void RejectUnknown() const;

 private:
  const nlohmann::json& object_;
  std::string_view what_;
  std::vector<std::string> taken_;
};

}  // namespace xschedd::simulate
