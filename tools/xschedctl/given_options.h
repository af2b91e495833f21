// Reads the options that were given, one after the other, and keeps the first error. Thread rule: one user at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.h"

namespace xschedd::ctl {

class GivenOptions {
 public:
  // Unless `text` is empty (the option was not given) or there was an error before: passes what `parse` makes of it to
  // `set`.
  template <typename Value, typename Set>
  void Read(const std::string& text, Result<Value> (*parse)(std::string_view), Set set) {
    if (text.empty() || error_) return;
    if (Result<Value> value = parse(text)) {
      set(std::move(*value));
    } else {
      error_ = std::move(value.error());
    }
  }

  const std::optional<Error>& FirstError() const { return error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace xschedd::ctl
