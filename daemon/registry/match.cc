#include "daemon/registry/match.h"

namespace xschedd {

bool ExeMatches(std::string_view wanted, std::string_view exe) {
  if (wanted.find('/') != std::string_view::npos) return wanted == exe;
  const std::size_t slash = exe.rfind('/');
  return !exe.empty() && wanted == (slash == std::string_view::npos ? exe : exe.substr(slash + 1));
}

bool CgroupMatches(std::string_view wanted, std::string_view cgroup) {
  while (!wanted.empty() && wanted.back() == '/')
    wanted.remove_suffix(1);
  if (cgroup.substr(0, wanted.size()) != wanted || cgroup.empty()) return false;
  return cgroup.size() == wanted.size() || cgroup[wanted.size()] == '/';
}

}  // namespace xschedd
