#include "daemon/policy/decide.h"

#include "daemon/policy/fifo.h"
#include "daemon/policy/priority.h"

namespace xschedd::policy {

std::optional<Name> NameFrom(std::string_view text) {
  if (text == Text(Name::kPriority)) return Name::kPriority;
  if (text == Text(Name::kFifo)) return Name::kFifo;
  return std::nullopt;
}

std::string_view Text(Name name) {
  return kNames[static_cast<int>(name)];
}

Decision Decide(const State& state, std::uint64_t now_ns) {
  switch (state.settings.name) {
    case Name::kPriority:
      return DecidePriority(state, now_ns);
    case Name::kFifo:
      break;
  }
  return DecideFifo(state);
}

}  // namespace xschedd::policy
