// Whether the daemon can be reached, and whether the installed parts belong together.
#include <cerrno>
#include <cstring>

#include "tools/xschedctl/doctor/checks.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

constexpr char kStart[] = "start it: systemctl start xschedd; or give --runtime-dir";

// What is wrong with a socket for every user. Empty: it accepts connections, or refuses only this user.
Findings CheckSocket(const SocketFacts& socket) {
  if (!socket.exists) return {Broken("no daemon: " + socket.path + " does not exist", kStart)};
  if (!socket.is_socket) return {Broken(socket.path + " is not a socket", "move it away and restart xschedd")};
  if (socket.connect_error == ECONNREFUSED) {
    return {Broken("no daemon: nothing listens on " + socket.path, kStart)};
  }
  if (socket.connect_error == EAGAIN) {
    return {Broken("the daemon accepts no connection on " + socket.path + ": it is stopped, or hangs",
                   "restart it: systemctl restart xschedd")};
  }
  if (socket.connect_error != 0 && socket.connect_error != EACCES) {
    return {Broken("cannot connect to " + socket.path + ": " + std::strerror(socket.connect_error), kStart)};
  }
  return {};
}

}  // namespace

Findings CheckClientSocket(const Facts& facts) {
  const SocketFacts& socket = facts.client_socket;
  if (Findings wrong = CheckSocket(socket); !wrong.empty()) return wrong;
  if (socket.connect_error == EACCES) {
    return {Broken("you may not connect to " + socket.path + ": your programs run unscheduled",
                   "every user must be able to: restart xschedd, which sets its mode to 0666, and check the folders "
                   "above it")};
  }
  return {Ok("the daemon listens on " + socket.path)};
}

Findings CheckAdminSocket(const Facts& facts) {
  const SocketFacts& socket = facts.admin_socket;
  if (!socket.exists && facts.client_socket.is_outside)
    return {Ok("not in this container, which needs none: administrators use the host's")};
  if (Findings wrong = CheckSocket(socket); !wrong.empty()) return wrong;
  Findings findings;
  if ((socket.mode & 0002) != 0) {
    findings.push_back(Broken("every user may write to " + socket.path + ", and so set priorities",
                              "chmod 0660 " + socket.path + ", or restart xschedd"));
  }
  if (socket.connect_error == EACCES) {
    std::string fix = "ask root: usermod -aG xschedd USER, and log in again";
    if (!facts.has_group)
      fix = "there is no group xschedd: systemd-sysusers creates it; until then only root has access";
    if (facts.is_member) fix = "you were added to group xschedd after you logged in: log in again";
    findings.push_back(
        Warning("you are neither root nor in group xschedd: your programs are scheduled, and xschedctl "
                "shows and changes only your own",
                fix));
    return findings;
  }
  if (!facts.daemon) {
    findings.push_back(Broken("the daemon does not answer on " + socket.path + ": " + facts.daemon_error,
                              "see journalctl -u xschedd; restart it"));
    return findings;
  }
  findings.push_back(Ok("the daemon answers on " + socket.path));
  return findings;
}

Findings CheckGroup(const Facts& facts) {
  if (facts.client_socket.is_outside) return {Ok("the host's counts: the daemon is outside this container")};
  if (!facts.has_group) {
    return {Warning("there is no group xschedd: only root manages other users' programs",
                    "systemd-sysusers creates it, or: groupadd --system xschedd; then restart xschedd")};
  }
  if (facts.is_root) return {Ok("there is a group xschedd; you are root")};
  return {Ok(facts.is_in_group ? "you are in group xschedd" : "there is a group xschedd; you are not in it")};
}

Findings CheckService(const Facts& facts) {
  const ServiceFacts& service = facts.service;
  if (!service.has_manager) {
    return {Ok("systemd does not run here: whoever started the daemon must restart it")};
  }
  if (!service.is_known) {
    return {Warning("systemd has no xschedd.service: nothing starts the daemon at boot, or again after a crash",
                    "install xschedd's package, or copy systemd/xschedd.service")};
  }
  const std::string state = service.active + " (" + service.sub + ")";
  Findings findings;
  if (service.active == "failed") {
    findings.push_back(
        Broken("xschedd.service is " + state, "see journalctl -u xschedd; then systemctl restart xschedd"));
  } else if (service.active != "active") {
    findings.push_back(Warning("xschedd.service is " + state, "systemctl enable --now xschedd"));
  }
  if (service.restarts != 0) {
    findings.push_back(Warning("systemd has restarted xschedd " + Count(service.restarts, "time"),
                               "see journalctl -u xschedd for the reason"));
  }
  if (service.watchdog.empty() || service.watchdog == "0" || service.watchdog == "infinity") {
    findings.push_back(Warning("xschedd.service has no watchdog: a daemon that hangs is not restarted",
                               "set WatchdogSec= in the unit; systemctl revert xschedd restores the installed unit"));
  }
  if (service.enabled != "enabled" && service.enabled != "static" && service.active == "active") {
    findings.push_back(
        Warning("xschedd.service is " + service.enabled + ": it is not started at boot", "systemctl enable xschedd"));
  }
  if (findings.empty())
    findings.push_back(Ok("xschedd.service is " + state + ", watchdog " + service.watchdog + ", never restarted"));
  return findings;
}

// Intended, so not an error; but nothing is scheduled, which is worth a warning.
Findings CheckEnforcing(const Facts& facts) {
  if (!facts.daemon || !facts.daemon->observes_only) return {};
  return {Warning("the daemon only observes: it decides, but holds no client",
                  "set enforce = true under [daemon] of its configuration, and systemctl reload xschedd")};
}

Findings CheckVersions(const Facts& facts) {
  Findings findings;
  // Neighbouring versions work together (common/versions.h).
  const auto fits = [&facts](const DaemonFacts& daemon) {
    if (daemon.abi_version == facts.abi_version) return daemon.layout_hash == facts.layout_hash;
    return daemon.abi_version + 1 == facts.abi_version || daemon.abi_version == facts.abi_version + 1;
  };
  if (facts.daemon && !fits(*facts.daemon)) {
    findings.push_back(Broken("the daemon is " + facts.daemon->version +
                                  " and uses another shared-memory layout than " + facts.ctl_version +
                                  ": clients of this release run unscheduled",
                              "restart the daemon after an upgrade: systemctl restart xschedd"));
  } else if (facts.daemon && facts.daemon->version != facts.ctl_version) {
    findings.push_back(Warning("the daemon is " + facts.daemon->version + ", xschedctl " + facts.ctl_version,
                               "restart the daemon after an upgrade: systemctl restart xschedd"));
  }
  const auto compare = [&](const char* what, const LoadFacts& library) {
    if (library.version.empty() || library.version == facts.ctl_version) return;
    findings.push_back(
        Warning(std::string(what) + " " + library.path + " is " + library.version + ", xschedctl " + facts.ctl_version,
                "install all parts from one package, and restart the programs"));
  };
  compare("the shim", facts.shim);
  compare("the private library", facts.library);
  if (findings.empty()) {
    findings.push_back(Ok("xschedctl" + std::string(facts.daemon ? ", the daemon" : "") +
                          (facts.shim.version.empty() ? "" : ", the shim") + ": " + facts.ctl_version));
  }
  return findings;
}

}  // namespace xschedd::ctl
