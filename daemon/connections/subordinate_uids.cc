#include "daemon/connections/subordinate_uids.h"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#include "common/parse_number.h"

namespace xschedd {
namespace {

// -1 means "no user" to the kernel.
constexpr std::uint64_t kMaxUid = std::numeric_limits<uid_t>::max() - 1;

std::optional<uid_t> FindInPasswd(const std::string& name) {
  std::vector<char> buffer(std::size_t{16} * 1024);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return found->pw_uid;
}

// The three parts of "a:b:c"; none if there are more or fewer.
std::optional<std::array<std::string_view, 3>> Split(std::string_view line) {
  std::array<std::string_view, 3> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t end = line.find(':');
    if ((end == std::string_view::npos) != (i + 1 == parts.size())) return std::nullopt;
    parts.at(i) = line.substr(0, end);
    if (end != std::string_view::npos) line.remove_prefix(end + 1);
  }
  return parts;
}

}  // namespace

SubordinateUids SubordinateUids::Parse(std::string_view text, const FindUser& find_user) {
  SubordinateUids uids;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto parts = Split(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!parts) continue;
    const auto first = ParseNumber<std::uint64_t>((*parts)[1]);
    const auto count = ParseNumber<std::uint64_t>((*parts)[2]);
    if (!first || !count || *first == 0 || *count == 0 || *first > kMaxUid) continue;
    const auto number = ParseNumber<std::uint64_t>((*parts)[0]);
    const std::optional<uid_t> owner =
        number && *number <= kMaxUid ? std::optional(static_cast<uid_t>(*number)) : find_user(std::string((*parts)[0]));
    if (!owner || *owner == 0) continue;
    const std::uint64_t last = *first + std::min(*count - 1, kMaxUid - *first);
    // Adds the parts that no earlier range covers.
    std::uint64_t from = *first;
    while (from <= last) {
      auto next = uids.ranges_.upper_bound(static_cast<uid_t>(from));
      if (next != uids.ranges_.begin() && std::prev(next)->second.last >= from) {
        from = std::uint64_t{std::prev(next)->second.last} + 1;
        continue;
      }
      const std::uint64_t to = next == uids.ranges_.end() ? last : std::min<std::uint64_t>(last, next->first - 1);
      uids.ranges_.emplace(static_cast<uid_t>(from), Range{static_cast<uid_t>(to), *owner});
      from = to + 1;
    }
  }
  return uids;
}

SubordinateUids SubordinateUids::Read(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return Parse(text, &FindInPasswd);
}

uid_t SubordinateUids::OwnerOf(uid_t uid) const {
  const auto next = ranges_.upper_bound(uid);
  if (next == ranges_.begin()) return uid;
  const Range& range = std::prev(next)->second;
  return uid <= range.last ? range.owner : uid;
}

}  // namespace xschedd
