#include "tools/xschedctl/colour.h"

#include <unistd.h>

#include <cstdlib>

namespace xschedd::ctl {
namespace {

std::string_view Sequence(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kBold:
      return "\x1b[1m";
    case Colour::kRed:
      return "\x1b[31m";
    case Colour::kGreen:
      return "\x1b[32m";
    case Colour::kYellow:
      return "\x1b[33m";
  }
  return "";
}

std::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

bool HasColour(int descriptor) {
  return ::isatty(descriptor) == 1 && Variable("NO_COLOR").empty() && !Variable("TERM").empty() &&
         Variable("TERM") != "dumb";
}

std::string Painted(std::string_view text, Colour colour, bool on) {
  if (!on || colour == Colour::kNone) return std::string(text);
  return std::string(Sequence(colour)) + std::string(text) + "\x1b[0m";
}

}  // namespace xschedd::ctl
