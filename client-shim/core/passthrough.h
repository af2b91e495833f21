// Which calls are let through ungated by configuration: by entry point ("hipMemcpyAsync") or by the library that makes
// the call ("librccl.so": every file whose name begins so). Sources: XSCHEDD_PASSTHROUGH and the daemon's
// configuration. Thread rule: a PassthroughRules is a value; it is made once and only read afterwards, by any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd::shim {

class PassthroughRules {
 public:
  // `names`: separated by commas, spaces around them ignored. `entries`: the entry points there are. Names that are
  // neither an entry point nor look like a library are left out and put into `unknown`.
  static PassthroughRules Parse(std::string_view names, const char* const* entries, std::uint32_t entry_count,
                                std::vector<std::string>* unknown);

  bool IsEmpty() const { return libraries_.empty() && !has_entries_; }
  bool HasLibraries() const { return !libraries_.empty(); }
  bool MatchesEntry(std::uint32_t entry) const { return entry < entries_.size() && entries_[entry]; }
  // `path`: of the object that the call came from.
  bool MatchesLibrary(std::string_view path) const;

 private:
  std::vector<bool> entries_;
  bool has_entries_ = false;
  std::vector<std::string> libraries_;
};

}  // namespace xschedd::shim
