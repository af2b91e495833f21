// The project's error type: what went wrong, and what the reader can do about it. Functions that can fail for reasons
// outside the program return Result<T>; exceptions are for programming errors and libraries that throw. Thread rule:
// values.
#pragma once

#include <cerrno>
#include <cstring>
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

// "Permission denied": the system call that failed last on this thread, for Error::what.
inline std::string ErrnoText() {
  return std::strerror(errno);
}

}  // namespace xschedd
