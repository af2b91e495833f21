#include "daemon/config/user_name.h"

#include <pwd.h>

#include <cerrno>
#include <cstring>

#include "common/parse_number.h"

namespace xschedd {
namespace {

Result<std::uint32_t> ParseUid(const std::string& text) {
  const auto uid = ParseNumber<std::uint32_t>(text);
  // The largest, -1, is not a user: the kernel uses it for "leave unchanged".
  if (uid && *uid != UINT32_MAX) return *uid;
  return Fail("\"" + text + "\" is not a uid", "give a number from 0 to " + std::to_string(UINT32_MAX - 1));
}

}  // namespace

Result<std::uint32_t> UidOf(const std::string& user) {
  if (user.empty()) return Fail("a user without a name", "give a user name or a uid");
  if (user[0] >= '0' && user[0] <= '9') return ParseUid(user);
  errno = 0;
  const passwd* const found = ::getpwnam(user.c_str());
  if (found != nullptr) return found->pw_uid;
  // getpwnam(3) lists these errno values for "not found".
  const bool is_unknown = errno == 0 || errno == ENOENT || errno == ESRCH || errno == EBADF || errno == EPERM;
  if (is_unknown) return Fail("there is no user \"" + user + "\"", "give a user name or a uid");
  return Fail("cannot look up user \"" + user + "\": " + std::strerror(errno), "give the uid");
}

}  // namespace xschedd
