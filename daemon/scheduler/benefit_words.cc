#include "daemon/scheduler/benefit_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "daemon/policy/benefit.h"

namespace xschedd {
namespace {

using Mode = policy::BenefitMemory::Mode;

// How much slower the mode is than held: "31 %", on average or by the tail, whichever is larger. A clearly slower block
// ends at once, so a large figure is a lower bound.
std::string Slower(const policy::BenefitMemory& memory, Mode mode) {
  const float decisive = std::max(policy::SlowerBy(memory.Of(mode)), memory.Of(mode).tail);
  return fmt::format("{}{:.0f} %", policy::Benefit::IsLowerBound(decisive) ? "at least " : "",
                     std::max(policy::SlowerPercent(decisive), 0.0));
}

// What being held costs those below it, compared with that mode: " and cost them 94 % of their launches", with `verb`
// " and cost". Empty: hardly anything, or it is unknown.
std::string Cost(const policy::BenefitMemory& memory, Mode mode, std::string_view verb) {
  const double percent = policy::CostPercent(memory, mode).value_or(0);
  return percent < 0.5 ? std::string() : fmt::format("{} them {:.0f} % of their launches", verb, percent);
}

// What the group would gain by more holding than its answer, which may be in force before it is known (benefit.h), and
// the others would lose.
std::string Gain(const policy::BenefitMemory& memory, std::string_view holding) {
  if (memory.Of(memory.settled).pairs == 0)
    return fmt::format("whether {} would make it faster is being measured", holding);
  return fmt::format("{} would make it {} faster{}", holding, Slower(memory, memory.settled),
                     Cost(memory, memory.settled, " and cost"));
}

// `compared`: the mode by whose comparison it is explained.
std::string AnswerText(const policy::BenefitMemory& memory, Mode compared, std::uint32_t tolerance_percent) {
  const std::string slower =
      fmt::format("it would be {} slower (tolerance_percent={})", Slower(memory, compared), tolerance_percent);
  const std::string part = fmt::format("for {:.0f} % of the time", 100 * memory.cost);
  if (policy::IsBeside(memory.settled)) {
    const std::string text = "it lets those below it run beside it: " + Gain(memory, "holding them");
    return memory.settled == policy::kCheapest ? text
                                               : text + "; without a limit on what they have in flight " + slower;
  }
  if (policy::IsWhileItWaits(memory.settled)) {
    const bool is_half = memory.settled == Mode::kWaitsHalf;
    return fmt::format("it holds those below it only {} its host waits for the device{}, {}: {}, and beside them {}",
                       is_half ? "every other time" : "while", is_half ? "" : " or is about to", part,
                       Gain(memory, "holding them whenever it is busy"), slower);
  }
  const std::string_view how =
      compared == Mode::kHeldWide ? "with more of theirs in flight when it begins" : "beside them";
  if (!policy::IsSettled(memory)) {
    const std::uint32_t pairs = memory.Of(compared).pairs;
    return fmt::format(
        "it holds those below it; whether that helps is being measured: {} it was {} slower ({} comparison{})", how,
        Slower(memory, compared), pairs, pairs == 1 ? "" : "s");
  }
  const std::string holds = "it holds those below it, " + part;
  if (memory.settled == Mode::kHeldWide && compared == Mode::kHeldWide)
    return holds + "; " + Gain(memory, "less of theirs in flight when it begins");
  return fmt::format("{}{}: {} {}", holds, Cost(memory, compared, ", which costs"), how, slower);
}

}  // namespace

std::string BenefitText(const policy::BenefitMemory& memory, std::uint32_t tolerance_percent) {
  const auto compared = policy::MostTelling(memory);
  if (tolerance_percent == 0 || !compared) return {};
  const std::string text = AnswerText(memory, *compared, tolerance_percent);
  const bool tries_cheaper = policy::IsSearching(memory) && memory.trial > memory.settled;
  return policy::IsSettled(memory) && tries_cheaper ? text + "; a mode that costs them less is being measured" : text;
}

std::string CostText(const policy::BenefitMemory& memory, std::uint64_t pid) {
  const bool is_known = memory.Of(policy::kCheapest).pairs != 0;
  if (!policy::IsSettled(memory) || !is_known || policy::IsBeside(memory.settled)) return {};
  return fmt::format("beside it pid {} would be {} slower", pid, Slower(memory, policy::kCheapest));
}

}  // namespace xschedd
