// Maps a uid to its user: the uids that subuid(5) gives a user for containers count as that user. Otherwise each of
// 65,536 uids would have its own quota. Only the file is read; ranges from a directory service (nsswitch.conf, subid)
// are unknown. Thread rule: values.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace xschedd {

class SubordinateUids {
 public:
  static constexpr char kPath[] = "/etc/subuid";
  using FindUser = std::function<std::optional<uid_t>(const std::string& name)>;

  // Skips lines that are not "OWNER:FIRST:COUNT" with a known user or a uid as owner. Where ranges overlap, the first
  // one counts, as for newuidmap(1). Skips root's ranges, because root decides who gets those uids.
  static SubordinateUids Parse(std::string_view text, const FindUser& find_user);
  // A missing or unreadable file has no ranges.
  static SubordinateUids Read(const std::string& path);

  // `uid` itself if no range contains it.
  uid_t OwnerOf(uid_t uid) const;
  std::size_t Ranges() const { return ranges_.size(); }

 private:
  struct Range {
    uid_t last;
    uid_t owner;
  };
  std::map<uid_t, Range> ranges_;  // by first uid; none overlap
};

}  // namespace xschedd
