#include "daemon/scheduler/filling_words.h"

#include <fmt/format.h>

#include <cmath>

#include "daemon/policy/filling.h"

namespace xschedd {

namespace {

// "21 % faster".
std::string Faster(float gain) {
  const double percent = 100 * std::expm1(static_cast<double>(gain));
  return fmt::format("{:.0f} % {}", std::abs(percent), percent < 0 ? "more slowly" : "faster");
}

}  // namespace

std::string FillingText(const policy::FillingMemory& memory) {
  const std::uint32_t joiners = memory.may_join ? memory.joiners : 0;
  const std::uint32_t now = std::min(memory.settled, memory.most - joiners);
  std::string text = fmt::format("{} at a time", now);
  if (joiners != 0) text += fmt::format(", and {} in all turns", joiners);
  if (now < memory.settled || (memory.most == 1 && memory.groups > 1))
    return text + ", because more would delay a more important client by more than tolerance_percent";
  if (memory.gain_of == 0) return text;
  return fmt::format("{}: with {} they got on {} than with {}", text, memory.gain_of, Faster(memory.gain),
                     memory.gain_of - 1);
}

std::string JoinsText(const policy::GroupMemory& memory, const policy::FillingMemory* on) {
  if (!memory.joins) return {};
  const std::string why =
      fmt::format("instead of having its own: with that, they and it got on {}", Faster(memory.joins_gain));
  if (on == nullptr || on->may_join) return "it joins all others' turns " + why;
  return fmt::format("it can join all others' turns {}; not now, since {}", why,
                     on->joiners >= on->most ? "that would delay a more important client by more than tolerance_percent"
                                             : "too few others take turns");
}

}  // namespace xschedd
