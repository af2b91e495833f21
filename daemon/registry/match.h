// How an executable and a cgroup are named by rules and selectors. Thread rule: pure functions.
#pragma once

#include <string_view>

namespace xschedd {

// `wanted` with a slash: the whole path; without: the file name.
bool ExeMatches(std::string_view wanted, std::string_view exe);

// `wanted` itself or one below it; "/a" is above "/a/b", not above "/ab".
bool CgroupMatches(std::string_view wanted, std::string_view cgroup);

}  // namespace xschedd
