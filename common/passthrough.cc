#include "common/passthrough.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "common/entry_point_names.h"

namespace xschedd {
namespace {

constexpr std::string_view kKernelPrefix = "kernel:";
constexpr char kGrammar[] = "write a library (librccl.so), an entry point (hipMemcpyAsync) or kernel:GLOB";
constexpr std::size_t kLongest = 1024;        // of one entry
constexpr std::size_t kLongestCompared = 96;  // comparing costs the product of both lengths, for each name

bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back()))
    text.remove_suffix(1);
  return text;
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

// "_Z24hipExtModuleLaunchKernelP18..." and "_ZN8hip_impl22hipLaunchKernelGGLImplEm...": returns the last of the leading
// length-prefixed names. A name that is not mangled is returned as it is.
std::string_view Unmangled(std::string_view name) {
  if (name.substr(0, 2) != "_Z") return name;
  std::string_view rest = name.substr(2);
  if (!rest.empty() && rest.front() == 'N') rest.remove_prefix(1);
  std::string_view last = name;
  while (!rest.empty() && IsDigit(rest.front())) {
    std::size_t length = 0;
    while (!rest.empty() && IsDigit(rest.front())) {
      length = length * 10 + static_cast<std::size_t>(rest.front() - '0');
      rest.remove_prefix(1);
    }
    if (length > rest.size()) break;
    last = rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return last;
}

// Without the suffixes that select a default stream or a version of the parameters.
std::string_view PlainName(std::string_view exported) {
  static constexpr std::array<std::string_view, 3> kStreams = {"_spt", "_ptsz", "_ptds"};
  std::string_view name = Unmangled(exported);
  for (const std::string_view end : kStreams) {
    if (EndsWith(name, end)) name.remove_suffix(end.size());
  }
  const std::size_t size = name.size();
  if (size > 3 && name[size - 3] == '_' && name[size - 2] == 'v' && IsDigit(name[size - 1])) name.remove_suffix(3);
  return name;
}

std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// The gated entry point whose name is closest to `text`; empty if none is close.
std::string_view Nearest(std::string_view text) {
  std::string_view best;
  if (text.size() > kLongestCompared) return best;
  std::size_t least = text.size() / 3 + 2;
  for (const EntryPointName& known : EntryPointNames()) {
    if (!known.is_gated) continue;
    const std::string_view plain = PlainName(known.name);
    const std::size_t distance = Distance(text, plain);
    if (distance >= least) continue;
    least = distance;
    best = plain;
  }
  return best;
}

tl::unexpected<Error> Wrong(std::string_view text, const std::string& what, const std::string& remedy) {
  return Fail("passthrough: \"" + std::string(text) + "\" " + what, remedy);
}

bool IsLibraryName(std::string_view text) {
  const auto at = text.find(".so");
  return at != std::string_view::npos && at > 0 && (at + 3 == text.size() || text[at + 3] == '.');
}

}  // namespace

Result<PassthroughEntry> ParsePassthrough(std::string_view given) {
  using Kind = PassthroughEntry::Kind;
  const std::string_view text = Trim(given);
  if (text.empty()) return Wrong(given, "is empty", kGrammar);
  if (text.size() > kLongest) return Wrong(text.substr(0, 40), "and so on is too long", "give at most 1024 characters");
  if (text.substr(0, kKernelPrefix.size()) == kKernelPrefix) {
    const std::string_view pattern = text.substr(kKernelPrefix.size());
    if (pattern.empty())
      return Wrong(text, "has no pattern", "write it behind the colon, as in kernel:*ncclDevKernel*");
    return PassthroughEntry{Kind::kKernel, std::string(pattern)};
  }
  if (text.find_first_of("*?") != std::string_view::npos) {
    return Wrong(text, "is a pattern, and only kernels go by patterns",
                 "write kernel:" + std::string(text) + " for kernels, or the whole name of a library or entry point");
  }
  if (text.find('/') != std::string_view::npos) {
    return Wrong(text, "is a path, and libraries go by their file names",
                 "write " + std::string(text.substr(text.rfind('/') + 1)));
  }
  if (text.find(':') != std::string_view::npos) {
    return Wrong(text, "is of no known kind",
                 "write kernel: before a kernel's name, and nothing before a library or an entry point");
  }
  if (IsLibraryName(text)) return PassthroughEntry{Kind::kLibrary, std::string(text)};
  bool is_known = IsLeftAlone(text);
  for (const EntryPointName& known : EntryPointNames()) {
    if (!MatchesEntryPoint(text, known.name)) continue;
    if (known.is_gated) return PassthroughEntry{Kind::kEntryPoint, std::string(text)};
    is_known = true;
  }
  if (is_known) return Wrong(text, "is never gated", "leave it out");
  if (text.substr(0, 3) == "lib") {
    return Wrong(text, "is no entry point that is gated, and no library's file name",
                 "write " + std::string(text) + ".so");
  }
  const std::string_view nearest = Nearest(text);
  if (nearest.empty()) return Wrong(text, "is neither a library nor an entry point that is gated", kGrammar);
  return Wrong(text, "is no entry point that is gated", "did you mean " + std::string(nearest) + "?");
}

std::vector<std::string_view> SplitPassthrough(std::string_view list) {
  std::vector<std::string_view> entries;
  while (!list.empty()) {
    const auto comma = list.find(',');
    const std::string_view entry = Trim(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    if (!entry.empty()) entries.push_back(entry);
  }
  return entries;
}

bool MatchesLibrary(std::string_view library, std::string_view path) {
  const auto slash = path.rfind('/');
  const std::string_view file = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (file.substr(0, library.size()) != library) return false;
  return file.size() == library.size() || file[library.size()] == '.';
}

bool MatchesEntryPoint(std::string_view name, std::string_view exported) {
  return name == exported || name == PlainName(exported);
}

bool MatchesGlob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  // Where to resume after the last star, which then takes one more character.
  std::size_t star = std::numeric_limits<std::size_t>::max();
  std::size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::numeric_limits<std::size_t>::max()) {
      p = star;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

}  // namespace xschedd
