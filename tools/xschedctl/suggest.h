// Suggests what a mistyped word may have meant. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xschedd::ctl {

// The one of `known` that is nearest to `word`: a letter added, removed or changed, or two swapped, counts one. Empty:
// none is near, or the word is too short to tell.
std::string Nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace xschedd::ctl
