#include "daemon/scheduler/filling_words.h"

#include <fmt/format.h>

#include <cmath>

#include "daemon/policy/filling.h"

namespace xschedd {

std::string FillingText(const policy::FillingMemory& memory) {
  const std::uint32_t now = std::min(memory.settled, memory.most);
  std::string text = fmt::format("{} at a time", now);
  if (now < memory.settled || (memory.most == 1 && memory.groups > 1))
    return text + ", because more would delay a more important client by more than tolerance_percent";
  if (memory.gain_of == 0) return text;
  const double percent = 100 * std::expm1(static_cast<double>(memory.gain));
  return fmt::format("{}: with {} they got on {:.0f} % {} than with {}", text, memory.gain_of, std::abs(percent),
                     percent < 0 ? "more slowly" : "faster", memory.gain_of - 1);
}

}  // namespace xschedd
