#include "client-shim/core/passthrough_rules.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <utility>

namespace xschedd::shim {
namespace {

using Kind = PassthroughEntry::Kind;

// Some releases return the name of the kernel's descriptor symbol.
std::string_view WithoutDescriptor(std::string_view name) {
  constexpr std::string_view kEnd = ".kd";
  if (name.size() > kEnd.size() && name.substr(name.size() - kEnd.size()) == kEnd) name.remove_suffix(kEnd.size());
  return name;
}

std::string Demangled(std::string_view name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      ::abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? std::string(text.get()) : std::string();
}

}  // namespace

PassthroughRules::PassthroughRules(std::vector<PassthroughEntry> entries, const char* const* entry_names,
                                   std::uint32_t entry_count)
    : entries_(std::move(entries)) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    has_libraries_ |= entries_[i].kind == Kind::kLibrary;
    has_kernels_ |= entries_[i].kind == Kind::kKernel;
    if (entries_[i].kind != Kind::kEntryPoint) continue;
    for (std::uint32_t number = 0; number < entry_count; ++number) {
      if (!MatchesEntryPoint(entries_[i].text, entry_names[number])) continue;
      if (by_entry_.empty()) by_entry_.resize(entry_count, kNone);
      if (by_entry_[number] == kNone) by_entry_[number] = static_cast<int>(i);
    }
  }
}

int PassthroughRules::Match(const Submission& submission, const Vendor& vendor, CallerLibraries* callers) const {
  if (submission.entry < by_entry_.size() && by_entry_[submission.entry] != kNone) return by_entry_[submission.entry];
  if (has_libraries_) {
    const int found = callers->WithPathOf(submission.caller,
                                          [&](const char* path) { return libraries_.Of(submission.caller, path); });
    if (found != kNone) return found;
  }
  if (has_kernels_ && submission.kernel.kind != KernelKind::kNone) {
    const char* name = vendor.kernel_name(submission.kernel, submission.stream);
    if (name != nullptr) return kernels_.Of(submission.kernel.handle, name);
  }
  return kNone;
}

int PassthroughRules::DecideLibrary(const void* self, const char* path) {
  const auto& entries = static_cast<const PassthroughRules*>(self)->entries_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].kind == Kind::kLibrary && MatchesLibrary(entries[i].text, path)) return static_cast<int>(i);
  }
  return kNone;
}

int PassthroughRules::DecideKernel(const void* self, const char* name) {
  const auto& entries = static_cast<const PassthroughRules*>(self)->entries_;
  const std::string_view plain = WithoutDescriptor(name);
  const std::string demangled = Demangled(plain);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].kind != Kind::kKernel) continue;
    if (MatchesGlob(entries[i].text, plain) || (!demangled.empty() && MatchesGlob(entries[i].text, demangled))) {
      return static_cast<int>(i);
    }
  }
  return kNone;
}

}  // namespace xschedd::shim
