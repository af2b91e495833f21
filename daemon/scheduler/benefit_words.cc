#include "daemon/scheduler/benefit_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/policy/benefit.h"

namespace xschedd {
namespace {

// Which of the two figures has decided: at the median, or of the slow ones.
float Decisive(const policy::BenefitMemory& memory) {
  return std::max(memory.typical, memory.tail);
}

// "31 %". A block that is clearly slower ends at once, so a large figure is a lower bound.
std::string Slower(const policy::BenefitMemory& memory) {
  const double percent = policy::SlowerPercent(Decisive(memory));
  return fmt::format("{}{:.0f} %", policy::Benefit::IsLowerBound(Decisive(memory)) ? "at least " : "",
                     std::max(percent, 0.0));
}

}  // namespace

std::string BenefitText(const policy::BenefitMemory& memory, std::uint32_t tolerance_percent) {
  if (tolerance_percent == 0 || memory.pairs == 0) return {};
  if (memory.settled == policy::BenefitMemory::Mode::kBeside) {
    return fmt::format("it lets those below it run beside it: holding them would make it {} faster", Slower(memory));
  }
  if (!memory.IsSettled()) {
    return fmt::format("it holds those below it; whether that helps is being measured ({} comparisons so far)",
                       memory.pairs);
  }
  return fmt::format(
      "it holds those below it, for {:.0f} % of the time: beside them it would be {} slower (tolerance_percent={})",
      100 * memory.cost, Slower(memory), tolerance_percent);
}

std::string CostText(const policy::BenefitMemory& memory, std::uint64_t pid) {
  if (!memory.IsSettled() || memory.settled == policy::BenefitMemory::Mode::kBeside) return {};
  return fmt::format("beside it pid {} would be {} slower", pid, Slower(memory));
}

}  // namespace xschedd
