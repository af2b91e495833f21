// Colour on a terminal; never elsewhere, if NO_COLOR is set, or if TERM is "dumb". Thread rule: pure, but for
// HasColour, which looks at the environment.
#pragma once

#include <string>
#include <string_view>

namespace xschedd::ctl {

enum class Colour { kNone, kBold, kRed, kGreen, kYellow };

// Whether what is written to this descriptor may be coloured.
bool HasColour(int descriptor);

// `text` as it is unless `on`.
std::string Painted(std::string_view text, Colour colour, bool on);

}  // namespace xschedd::ctl
