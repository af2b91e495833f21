#!/usr/bin/env python3
"""What `./dev dist` made in a booted Debian 12: from the native packages to the portable one and back, from them to the archive
and back; the archive serves, restarts, upgrades under live clients, and is removed.

Run by `life` in `booted`. Each step needs the one before it. The last line is `N passed, N failed`.
"""

import json
import sys

from life import GPU, SERVICE, SOCKETS, TEST, Life
from machine import Program, expect, files, property_of, run, run_steps, wait_for

INSTALL = f"{TEST}/archive/install"
PLUGIN = "xschedd-nri.service"
PREFIX = "/usr/local"
MINE = "# of the administrator"
NATIVE = ("xschedd", "xschedd-client", "xschedd-bench", "libxschedd-dev", "python3-xschedd")


def get(folder):
    run("sh", "-c", f"apt-get install -y -q --no-install-recommends {TEST}/{folder}/*.deb")


class Portable(Life):
    def serves(self, program):
        """The daemon is `program`, with the administrator's configuration, and running programs have come back."""
        wait_for(lambda: property_of(SERVICE, "SubState") == "running", "it serves")
        for unit in (SERVICE, *SOCKETS):
            expect(run("systemctl", "is-active", unit) == "active", f"{unit} is not active")
            expect(run("systemctl", "is-enabled", unit) == "enabled", f"{unit} is not enabled")
        expect(run("readlink", f"/proc/{self.main_pid()}/exe") == program, "another program is running")
        run("grep", "-q", MINE, "/etc/xschedd/xschedd.toml")
        wait_for(lambda: self.client("preloaded.py"), "the program is a client again")
        expect(self.program.ask("launch").split()[0] == "0", "the program cannot launch")

    # ---- steps, in this order
    def native(self):
        get("packages")

    def clients_of_the_native_packages(self):
        self.clients_come()
        run("sh", "-c", f"echo '{MINE}' >>/etc/xschedd/xschedd.toml")

    def the_archive_refuses_beside_them(self):
        before = files()
        said = run(INSTALL, status=1)
        expect("remove the package first" in said, said)
        expect(files() == before, "it left something")
        return said

    def to_the_portable_package(self):
        get("portable")
        self.serves("/usr/sbin/xschedd")
        expect("portable" in run("dpkg", "-S", "/usr/sbin/xschedd"), "the daemon is not the portable one")

    def and_back(self):
        get("packages")
        self.serves("/usr/sbin/xschedd")
        run("dpkg", "--purge", "xschedd-portable")
        self.serves("/usr/sbin/xschedd")

    def to_the_archive(self):
        run("apt-get", "remove", "-y", "-q", *NATIVE)
        said = run(INSTALL)
        self.serves(f"{PREFIX}/sbin/xschedd")
        return said

    def verify(self):
        for unit, start in ((SERVICE, "xschedd"), (PLUGIN, "xschedd-nri")):
            expect(f"{PREFIX}/sbin/{start}" in run("systemctl", "cat", unit), f"{unit} starts another program")
        said = run("systemd-analyze", "verify", SERVICE, *SOCKETS, PLUGIN)
        expect("xschedd" not in said, said)

    def self_test(self):
        """The root has no GPU and no HIP; the doctor may report only that."""
        report = json.loads(run("xschedctl", "--json", "doctor", "--self-test", status=None))
        wrong = [finding for finding in report["findings"] if finding["level"] not in ("ok", "note")]
        expect(all(finding["check"] in ("device", "runtime") for finding in wrong), json.dumps(wrong, indent=1))
        tested = [finding["what"] for finding in report["findings"] if finding["check"] == "self-test"]
        expect(tested, f"there was no self test: {report['findings']}")
        return "; ".join(tested)

    def plugin(self):
        """Optional; it waits for an engine, and its settings are read."""
        states = [run("systemctl", word, PLUGIN, status=None) for word in ("is-active", "is-enabled")]
        expect(states == ["inactive", "disabled"], f"the plugin, which is optional, is {states}")
        run("xschedd-nri", "--check-config")
        run("systemctl", "start", PLUGIN)
        wait_for(lambda: property_of(PLUGIN, "SubState") == "running", "the plugin runs")

    def tenants_of_the_archive(self):
        """The daemon's state does not outlive a removed package: the tenants, whose memory it had, begin again."""
        for tenant in (self.low, self.high):
            tenant.process.kill()
        self.low, self.high = (Program(f"{TEST}/restart_tenant", "/run/xschedd", priority, GPU) for priority in (0, 50))
        for tenant in (self.low, self.high):
            expect(tenant.hear() == "ready", "a tenant did not start")
            expect(tenant.ask("busy") == "ok", "a tenant is not busy")
        wait_for(lambda: self.look()["bound"] == "1", "the client of lower priority is held")
        run("xschedctl", "set", "--pid", self.client("preloaded.py")["pid"], "--priority", -7)

    def upgrade(self):
        """The same archive again, while clients and plugin run."""
        since = [property_of(unit, "ActiveEnterTimestampMonotonic") for unit in SOCKETS]
        plugin = property_of(PLUGIN, "MainPID")
        said = self.survive(lambda: run(INSTALL) and "")
        expect(since == [property_of(unit, "ActiveEnterTimestampMonotonic") for unit in SOCKETS], "the sockets were closed")
        expect(property_of(PLUGIN, "MainPID") not in ("0", plugin), "the old plugin is running")
        self.serves(f"{PREFIX}/sbin/xschedd")
        return said

    def uninstall(self):
        run(f"{PREFIX}/lib/xschedd/install", "--uninstall")
        self.all_inactive()
        for _ in range(3):
            expect(self.program.ask("launch").split()[0] == "0", "a running program can no longer launch")

    def nothing_is_left(self):
        expect(self.program.end() == 0, "a running program ended with an error")
        self.low.end()
        self.high.end()
        run("dpkg", "--purge", *NATIVE)
        left, gone = files() - self.before, self.before - files()
        expect(not left and not gone, f"left behind: {sorted(left)}; gone: {sorted(gone)}")
        failed = run("systemctl", "list-units", "--all", "--no-legend", "--plain", "xschedd*")
        expect(not failed, f"systemd still knows {failed}")

    def native_again(self):
        get("packages")
        run("xschedctl", "version")

    STEPS = (Life.depend, native, clients_of_the_native_packages, the_archive_refuses_beside_them, to_the_portable_package, and_back,
             to_the_archive, verify, self_test, Life.acceptance, plugin, tenants_of_the_archive, Life.restart, Life.crash, Life.watchdog,
             Life.reload, upgrade, uninstall, nothing_is_left, native_again)


if __name__ == "__main__":
    sys.exit(run_steps(Portable()))
