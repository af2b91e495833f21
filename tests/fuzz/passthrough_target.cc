// Passthrough rules against libraries, entry points and kernel names, mangled or not.
// Properties: a rule survives parsing and writing; a pattern matches as its definition says.
#include "client-shim/core/passthrough_rules.h"
#include "common/entry_point_names.h"
#include "common/passthrough.h"
#include "tests/fuzz/input.h"

namespace {

using namespace xschedd;

// The definition of a pattern in its shortest form; exponential, so only for short ones.
bool Matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    return Matches(pattern.substr(1), text) || (!text.empty() && Matches(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) &&
         Matches(pattern.substr(1), text.substr(1));
}

std::string kernel_name;

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string list = input.Text();
  const std::string name = input.Text();
  const std::string pattern = input.ShortText().substr(0, 8);
  const std::string text = input.ShortText().substr(0, 12);

  std::vector<PassthroughEntry> entries;
  for (const std::string_view part : SplitPassthrough(list)) {
    const Result<PassthroughEntry> entry = ParsePassthrough(part);
    if (!entry) continue;
    const Result<PassthroughEntry> again = ParsePassthrough(entry->Written());
    FUZZ_CHECK(again && *again == *entry);
    entries.push_back(*entry);
    (void)MatchesLibrary(entry->text, name);
    (void)MatchesEntryPoint(entry->text, name);
  }
  FUZZ_CHECK(MatchesGlob(pattern, text) == Matches(pattern, text));
  FUZZ_CHECK(MatchesGlob("*", name));

  kernel_name = name.substr(0, name.find('\0'));
  static shim::Vendor vendor{};
  vendor.kernel_name = [](const shim::KernelRef&, void*) { return kernel_name.c_str(); };
  static const char* const kNames[] = {"hipMemcpyAsync", "hipLaunchKernel",
                                       "_Z24hipExtModuleLaunchKernelP18ihipModule"};
  shim::CallerLibraries callers(nullptr);
  const shim::PassthroughRules rules(entries, kNames, 3);
  shim::Submission submission{};
  submission.entry = input.Below(5);
  submission.caller = reinterpret_cast<const void*>(&Matches);
  submission.kernel = {shim::KernelKind::kHostFunction, kernel_name.data()};
  const int found = rules.Match(submission, vendor, &callers);
  FUZZ_CHECK(found == shim::PassthroughRules::kNone || static_cast<std::size_t>(found) < entries.size());
  return 0;
}
