#include "daemon/actor.h"

namespace xschedd {

std::string Text(const Actor& actor) {
  return (actor.is_admin ? "by " : "by its user, ") + Text(PrincipalOf(actor)) + " (pid " + std::to_string(actor.pid) +
         (actor.login_uid ? ", login uid " + std::to_string(*actor.login_uid) : "") + ")";
}

std::string Fields(const Actor& actor) {
  return "by_uid=" + std::to_string(actor.uid) + " by_pid=" + std::to_string(actor.pid) +
         " login_uid=" + (actor.login_uid ? std::to_string(*actor.login_uid) : "none");
}

}  // namespace xschedd
