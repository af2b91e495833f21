#include "client-shim/core/passthrough.h"

#include <algorithm>

#include "client-shim/core/environment.h"

namespace xschedd::shim {

Passthrough::Passthrough(std::string environment, const StubTable& stub)
    : environment_(std::move(environment)),
      entry_names_(stub.entry_names),
      entry_count_(stub.entry_count),
      callers_(stub.find_object) {
  Configure({});
}

void Passthrough::Add(std::string_view text, const char* source, std::vector<PassthroughEntry>* entries) {
  Result<PassthroughEntry> entry = ParsePassthrough(text);
  if (!entry) {
    const std::string line = source + entry.error().Line() + "; it is ignored";
    if (reported_.insert(line).second) Warn(line);
    return;
  }
  if (std::find(entries->begin(), entries->end(), *entry) == entries->end()) entries->push_back(std::move(*entry));
}

void Passthrough::Configure(const std::vector<std::string>& from_daemon) {
  std::vector<PassthroughEntry> entries;
  for (const std::string_view text : SplitPassthrough(environment_))
    Add(text, "XSCHEDD_PASSTHROUGH: ", &entries);
  for (const std::string& text : from_daemon)
    Add(text, "the daemon's configuration: ", &entries);
  if (entries == entries_) return;
  const Active* active = nullptr;
  if (!entries.empty()) {
    std::vector<abi::Counter*> counters;
    counters.reserve(entries.size());
    for (const PassthroughEntry& entry : entries)
      counters.push_back(&counts_[entry.Written()].passed);
    kept_.emplace_back(new Active{{entries, entry_names_, entry_count_}, std::move(counters)});
    active = kept_.back().get();
  }
  entries_ = std::move(entries);
  // release: see Match. The rules first, so that whoever sees the new epoch finds the new rules.
  active_.store(active, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
}

std::vector<std::pair<std::string, std::uint64_t>> Passthrough::TakeCounts() {
  std::vector<std::pair<std::string, std::uint64_t>> taken;
  for (auto& [rule, count] : counts_) {
    // relaxed: a statistic.
    const std::uint64_t passed = count.passed.load(std::memory_order_relaxed);
    if (passed != count.reported) taken.emplace_back(rule, passed - count.reported);
    count.reported = passed;
  }
  return taken;
}

}  // namespace xschedd::shim
