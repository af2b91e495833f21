#include "daemon/config/match.h"

#include <algorithm>

namespace xschedd {
namespace {

constexpr std::size_t kContainerIdSize = 64;
constexpr std::size_t kShortContainerIdSize = 12;

bool AreHexDigits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The container id that a component of a cgroup path ends with; empty: none.
std::string_view ContainerOf(std::string_view component) {
  constexpr std::string_view kScope = ".scope";
  if (component.ends_with(kScope)) component.remove_suffix(kScope.size());
  component.remove_prefix(component.find_last_of("-:") + 1);  // npos + 1 is 0
  return component.size() == kContainerIdSize && AreHexDigits(component) ? component : std::string_view();
}

// "user@1000.service", which systemd delegates to the user.
bool IsUserManager(std::string_view component) {
  return component.starts_with("user@") && component.ends_with(".service");
}

}  // namespace

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

bool IsContainerId(std::string_view text) {
  return text.size() >= kShortContainerIdSize && text.size() <= kContainerIdSize && AreHexDigits(text);
}

std::vector<std::string_view> ContainersIn(std::string_view cgroup) {
  std::vector<std::string_view> ids;
  while (!cgroup.empty()) {
    const std::string_view component = cgroup.substr(0, cgroup.find('/'));
    if (const std::string_view id = ContainerOf(component); !id.empty()) ids.push_back(id);
    cgroup.remove_prefix(std::min(component.size() + 1, cgroup.size()));
  }
  return ids;
}

bool ContainerMatches(std::string_view wanted, std::string_view cgroup) {
  if (!IsContainerId(wanted)) return false;
  const std::vector<std::string_view> ids = ContainersIn(cgroup);
  if (ids.empty()) return false;
  const std::string_view above = cgroup.substr(0, static_cast<std::size_t>(ids.front().data() - cgroup.data()));
  return !IsBelowUsers(above) && ids.front().starts_with(wanted);
}

bool IsBelowUsers(std::string_view cgroup) {
  return CgroupMatches("/user.slice", cgroup) || IsNamedByUsers(cgroup);
}

bool IsNamedByUsers(std::string_view cgroup) {
  while (!cgroup.empty()) {
    const std::string_view component = cgroup.substr(0, cgroup.find('/'));
    if (IsUserManager(component)) return true;
    cgroup.remove_prefix(std::min(component.size() + 1, cgroup.size()));
  }
  return false;
}

}  // namespace xschedd
