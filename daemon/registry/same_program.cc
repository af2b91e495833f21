#include "daemon/registry/same_program.h"

#include <string>

namespace xschedd {
namespace {

bool AreOfOneUser(const Program& one, const Program& other) {
  if (*one.principal == *other.principal) return true;
  if (one.claim == nullptr || other.claim == nullptr) return false;
  for (const char* const label : {"namespace", "user"}) {
    const std::string value = LabelOf(*one.claim, label);
    if (!value.empty()) return value == LabelOf(*other.claim, label);
  }
  return false;
}

}  // namespace

bool IsSame(const Program& one, const Program& other) {
  const ClientIdentity& own = one.identity;
  return !own.command.empty() && own.command == other.identity.command && own.exe == other.identity.exe &&
         AreOfOneUser(one, other);
}

}  // namespace xschedd
