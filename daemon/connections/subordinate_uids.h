// Which user a uid belongs to: uids of a range that subuid(5) gives to a user, for its containers, count as that user.
// Otherwise each of 65,536 uids would have a quota of its own. Only the file is read: ranges from a directory service
// (nsswitch.conf, subid) are not known. Thread rule: values.
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

  // Lines that are not "OWNER:FIRST:COUNT", with an owner that is a user or a uid, are left out; of ranges that overlap
  // the first counts, as for newuidmap(1). Root's ranges are left out: to whom they are given is
  // root's decision, as with uids of users.
  static SubordinateUids Parse(std::string_view text, const FindUser& find_user);
  // A file that is not there, or cannot be read, has no ranges.
  static SubordinateUids Read(const std::string& path);

  // `uid` itself where it is in no range.
  uid_t OwnerOf(uid_t uid) const;
  std::size_t Ranges() const { return ranges_.size(); }

 private:
  struct Range {
    uid_t last;
    uid_t owner;
  };
  std::map<uid_t, Range> ranges_;  // by the first; none overlap
};

}  // namespace xschedd
