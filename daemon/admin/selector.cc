#include "daemon/admin/selector.h"

#include <algorithm>

#include "daemon/config/match.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

constexpr std::size_t kTextLimit = 256;

}  // namespace

bool IsEmpty(const v1::Selector& selector) {
  return selector.pid().empty() && !selector.has_uid() && !selector.has_group() && !selector.has_cgroup() &&
         !selector.has_exe() && !selector.all();
}

bool Matches(const v1::Selector& selector, const Client& client) {
  if (IsEmpty(selector)) return false;
  const ClientIdentity& who = client.identity;
  const auto& pids = selector.pid();
  if (!pids.empty() && std::find(pids.begin(), pids.end(), who.pid) == pids.end()) return false;
  if (selector.has_uid() && selector.uid() != who.uid) return false;
  if (selector.has_group() && selector.group() != client.group->name) return false;
  if (selector.has_cgroup() && !CgroupMatches(selector.cgroup(), who.cgroup)) return false;
  return !selector.has_exe() || ExeMatches(selector.exe(), who.exe);
}

std::string Describe(const v1::Selector& selector) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const std::uint64_t pid : selector.pid()) {
    add("pid " + std::to_string(pid));
    if (text.size() > kTextLimit) break;
  }
  if (selector.has_uid()) add("uid " + std::to_string(selector.uid()));
  if (selector.has_group()) add("group \"" + CleanText(selector.group(), kTextLimit) + "\"");
  if (selector.has_cgroup()) add("cgroup \"" + CleanText(selector.cgroup(), kTextLimit) + "\"");
  if (selector.has_exe()) add("exe \"" + CleanText(selector.exe(), kTextLimit) + "\"");
  if (text.empty()) return "\"all\": nobody is connected";
  return text;
}

}  // namespace xschedd
