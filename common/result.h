// The error type of the project: what went wrong and what the reader can do about it, as one line each.
// Functions that can fail for reasons outside the program return Result<T>; exceptions are left to programming errors
// and to libraries that throw. Thread rule: values.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace xschedd {

struct Error {
  std::string what;    // "cannot open /etc/xschedd.toml: Permission denied"
  std::string remedy;  // "run as root, or give --config"; may be empty
  std::string Line() const { return remedy.empty() ? what : what + "; " + remedy; }
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> Fail(std::string what, std::string remedy = {}) {
  return tl::unexpected<Error>(Error{std::move(what), std::move(remedy)});
}

}  // namespace xschedd
