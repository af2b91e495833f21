#include "client-shim/core/passthrough.h"

#include <algorithm>

namespace xschedd::shim {
namespace {

std::string_view Trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool LooksLikeLibrary(std::string_view name) {
  return name.starts_with("lib") || name.find(".so") != std::string_view::npos;
}

}  // namespace

PassthroughRules PassthroughRules::Parse(std::string_view names, const char* const* entries, std::uint32_t entry_count,
                                         std::vector<std::string>* unknown) {
  PassthroughRules rules;
  rules.entries_.resize(entry_count);
  while (!names.empty()) {
    const auto comma = names.find(',');
    const std::string_view name = Trim(names.substr(0, comma));
    names = comma == std::string_view::npos ? std::string_view{} : names.substr(comma + 1);
    if (name.empty()) continue;
    const auto found = std::find(entries, entries + entry_count, name);
    if (found != entries + entry_count) {
      rules.entries_[static_cast<std::size_t>(found - entries)] = true;
      rules.has_entries_ = true;
    } else if (LooksLikeLibrary(name)) {
      rules.libraries_.emplace_back(name);
    } else {
      unknown->emplace_back(name);
    }
  }
  return rules;
}

bool PassthroughRules::MatchesLibrary(std::string_view path) const {
  const auto slash = path.rfind('/');
  const std::string_view file = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return std::any_of(libraries_.begin(), libraries_.end(),
                     [&](const std::string& library) { return file.starts_with(library); });
}

}  // namespace xschedd::shim
